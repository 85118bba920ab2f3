"""Reports about a call: an object, a text page, a web page. Nothing of it is loaded before it is
used.
"""
