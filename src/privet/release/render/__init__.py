"""An answer for those who read it: text, HTML, JSON, frames and files, charts in characters, pictures.

Each renderer is a function of a `View` (or of the release itself, for programs), so that the terminal, a notebook and a
server show the same answer.
"""
