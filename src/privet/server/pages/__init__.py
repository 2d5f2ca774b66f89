"""The page: everything that a person sees in a browser, rendered on the server."""
