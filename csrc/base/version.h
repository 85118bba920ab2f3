/* The version of the package, written only here: setup.py and the Python package read it. It is part of every key of
 * the disk cache. */
#ifndef CI_BASE_VERSION_H
#define CI_BASE_VERSION_H

#define CI_VERSION "0.1.0"

#endif
