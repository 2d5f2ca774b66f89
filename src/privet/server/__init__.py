"""The server: one place with the data, the budget and the rules, for analysts who can't reach the data.

`accounts/` says who somebody is, `authorization` what they may do, `routes` what there is; `asking` plans, pays and
answers, for the API and for the pages alike.
"""
