from setuptools import Extension, setup

import cinductor

setup(
    ext_modules=[
        Extension(
            "cinductor_dummy._dummy",
            ["cinductor_dummy/_dummy.c"],
            include_dirs=[cinductor.get_include()],
            extra_compile_args=["-std=gnu11"],
        )
    ]
)
