"""Reports about a call: an object, a text page, a web page. The modules are loaded when they are first used."""
