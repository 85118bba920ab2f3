"""What a call became, for people to look at: an object, a page of text, a web page. Nothing of it is
loaded before somebody asks.
"""
