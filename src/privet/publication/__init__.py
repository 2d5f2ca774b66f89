"""A batch of answers as a folder to publish: tables, pictures, certificates, and a page that shows them.

Everything in it but the pictures follows from the certificates and the manifest, so that anyone can derive it anew.
"""
