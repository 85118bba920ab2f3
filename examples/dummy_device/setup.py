from setuptools import Extension, setup

import cinductor

setup(
    ext_modules=[
        Extension(
            "cinductor_dummy._dummy",
            ["cinductor_dummy/_dummy.c", "cinductor_dummy/_testing.c"],
            include_dirs=[cinductor.get_include()],
            depends=["cinductor_dummy/_testing.h"],
            extra_compile_args=["-std=gnu11"],
        )
    ]
)
