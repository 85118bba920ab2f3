"""Builds the example package cinductor_opencl: OpenCL for cinductor."""

from setuptools import Extension, setup

import cinductor

setup(
    ext_modules=[
        Extension(
            "cinductor_opencl._opencl",
            [f"cinductor_opencl/_{name}.c" for name in ("device", "kernels")],
            include_dirs=[cinductor.get_include()],
            extra_compile_args=["-std=gnu11"],
        )
    ]
)
