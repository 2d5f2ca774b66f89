"""OpenID Connect: people sign in at their company's provider, which tells the server who they are.

The protocol's parts come from authlib (requests, PKCE, the claims of an ID token) and joserfc (signatures). What goes
over the network is fetched here, with limits of size and time. Nothing that a provider sends is shown or logged.
"""

from privet.server.openid.errors import ProviderError
from privet.server.openid.flow import Flow, redirect_uri
from privet.server.openid.id_token import Named
from privet.server.openid.provider import Provider
from privet.server.openid.secret import client_secret

__all__ = ["Flow", "Named", "Provider", "ProviderError", "client_secret", "redirect_uri"]
