"""Builds the example package cinductor_dummy: a device for cinductor that needs no hardware."""

from setuptools import Extension, setup

import cinductor

setup(
    ext_modules=[
        Extension(
            "cinductor_dummy._dummy",
            [f"cinductor_dummy/_{name}.c" for name in ("dummy", "groups", "memory", "streams", "testing")],
            include_dirs=[cinductor.get_include()],
            depends=["cinductor_dummy/_card.h", "cinductor_dummy/_testing.h"],
            extra_compile_args=["-std=gnu11"],
        )
    ]
)
