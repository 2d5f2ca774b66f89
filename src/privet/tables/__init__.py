"""Declared tables, total expressions over their rows, person-local operators, and aggregates of groups.

Every node (schema, expression, operator, aggregate, query, statement) validates itself when it is constructed, so no
ill-typed tree can exist, whether it comes from Python, SQL, JSON or a constructor.

Declarations: `schema` (tables and columns), `kinds` (what a steward can declare), `types` (the public range of a
value), `units` (numbers as integers of a unit), `stored_types` (how a source stores a column).

Questions: `expressions/`, `operators`, `aggregates`, `extremes`, `groups`, `caps` (rows per person), `arrangement`
(order and limit of an answer), `query`, `relation` (how Python builds one), `statement` (the request to an engine),
`codec` (all of them as JSON).

`analysis/` draws conclusions from public facts alone: `outcomes` (what a condition can be), `conditions` (what is true
of every row), `inverses` (from a key back to its columns), `narrowing` (the remaining groups), `constant_conditions`
(comparisons that are never true), `advice` (the error for one of these), `contradictions` (conditions that exclude each
other), `ranges` (types cut to what is known).
"""
