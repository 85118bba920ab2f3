/* The version of the package: enters every key of the disk cache. tests/test_structure.py holds it
 * against pyproject.toml and the Python package. */
#ifndef CI_BASE_VERSION_H
#define CI_BASE_VERSION_H

#define CI_VERSION "0.1.0"

#endif
