"""Builds the example package cinductor_scratchpad: a simulated accelerator for cinductor with its own compiler."""

from setuptools import Extension, setup

import cinductor

setup(
    ext_modules=[
        Extension(
            "cinductor_scratchpad._scratchpad",
            ["cinductor_scratchpad/_scratchpad.c"],
            include_dirs=[cinductor.get_include()],
            extra_compile_args=["-std=gnu11"],
        )
    ]
)
