"""The names of NumPy's functions and array methods that can be captured, and where each is captured from."""

from __future__ import annotations

# The functions of NumPy and the methods of arrays (with a point) for which each module has handlers.
MODULES = {
    "elementwise": """where clip round around copyto putmask iscomplexobj isrealobj may_share_memory shares_memory
        .clip .round .conj .conjugate""",
    "reduce": """sum prod max amax min amin any all mean var std argmax argmin ptp cumsum cumprod cumulative_sum cumulative_prod
        .sum .prod .max .min .any .all .mean .var .std .argmax .argmin .cumsum .cumprod""",
    "shape": """reshape ravel transpose swapaxes squeeze expand_dims broadcast_to broadcast_arrays diagonal trace diag diagflat
        fill_diagonal rot90 lib.stride_tricks.sliding_window_view
        .reshape .ravel .flatten .transpose .swapaxes .squeeze .diagonal .trace""",
    "join": "concatenate concat stack meshgrid repeat tile roll array_split split kron .repeat",
    "content": """copy astype .copy .__copy__ .__deepcopy__ .astype .fill .item .view .tolist .dot .tobytes .dump .dumps .tofile .__array__
        .__reduce__ .getfield .setflags .byteswap .newbyteorder .resize .setfield""",
    "create": """zeros ones empty full full_like zeros_like ones_like empty_like eye identity array asarray asanyarray
        ascontiguousarray asfortranarray .__array_wrap__""",
    "grid": "arange tri linspace hanning hamming blackman bartlett kaiser i0",
    "library": "ufunc",
    "linalg": "dot vdot inner linalg.vecdot linalg.inv linalg.det linalg.cholesky",
    "einsum": "einsum",
    "decompose": """linalg.svd linalg.svdvals linalg.eigh linalg.eigvalsh linalg.eig linalg.eigvals linalg.qr linalg.slogdet linalg.solve
        linalg.lstsq""",
    "tricks": "r_.__class__.__base__.__getitem__ mgrid.__class__.__base__.__getitem__",
    "index": """take take_along_axis put_along_axis put choose ix_ place
        .__getitem__ .__setitem__ .take .put .choose""",
    "order": "sort argsort lexsort partition argpartition searchsorted digitize .sort .argsort .argpartition .partition .searchsorted",
    "search": "nonzero flatnonzero argwhere extract compress unique bincount count_nonzero .nonzero .compress",
    "statistic": """median nanmedian percentile quantile nanpercentile nanquantile interp gradient histogram histogram_bin_edges histogramdd
        average""",
    "signal": """convolve correlate delete insert unravel_index ravel_multi_index isin lib._arraysetops_impl._in1d packbits unpackbits""",
    "pad": "pad",
    "fourier": """fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn fft.rfftn
        fft.irfftn""",
}
ALIASES = {"concat": "concatenate"}  # functions whose own name is another one
INLINED = """
average cov corrcoef nansum nanprod nanmean nanvar nanstd nanmax nanmin nancumsum nancumprod
isclose allclose nan_to_num sinc angle real imag fix select isposinf isneginf array_equal
moveaxis rollaxis flip fliplr flipud hstack vstack dstack column_stack
hsplit vsplit dsplit tile tri tril triu diff gradient
atleast_1d atleast_2d atleast_3d outer tensordot cross trapezoid
block matrix_transpose polyval
linalg.norm linalg.matrix_power linalg.multi_dot linalg.cross linalg.outer linalg.vector_norm
linalg.matrix_norm linalg.matrix_transpose linalg.trace linalg.diagonal linalg.tensordot
logspace geomspace append fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift
polyder polyint polyadd polysub polymul polydiv roots poly piecewise unwrap
histogram2d nanargmax nanargmin apply_over_axes sort_complex
real_if_close union1d intersect1d setxor1d unique_values unique_counts
unique_inverse unique_all tril_indices triu_indices tril_indices_from triu_indices_from
diag_indices diag_indices_from mask_indices vander indices fromfunction asarray_chkfinite require
unstack resize isreal iscomplex array_equiv isfortran common_type
linalg.matmul linalg.matrix_rank linalg.tensorsolve linalg.tensorinv linalg.pinv
lib.scimath.sqrt lib.scimath.log lib.scimath.power lib.scimath.log10 lib.scimath.log2
lib.scimath.arcsin lib.scimath.arccos lib.scimath.arctanh lib.scimath.logn
polynomial.polynomial.polyval polynomial.chebyshev.chebval
polyfit
""".split()
