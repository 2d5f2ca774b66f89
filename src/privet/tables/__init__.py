"""Declared tables, total expressions over their rows, person-local operators, and aggregates of groups.

Every node (schema, expression, operator, aggregate, query, statement) validates itself when it is constructed, so no
ill-typed tree can exist, whether it comes from Python, SQL, JSON or a constructor.

Declarations: `schema` (tables and columns), `types` (the public range of a value), `units` (numbers as integers
of a unit), `rules` (how expressions are typed). Questions: `expressions`, `language` (how Python writes them),
`notation` (an expression as a line of Python or SQL), `operators`, `aggregates`, `extremes`, `groups`, `caps` (rows
per person), `arrangement` (order and limit of an answer), `query` (the question and its fluent interface),
`statement` (the request to an engine), `codec` (all of them as JSON).

Consequences of conditions, from public facts alone: `reach` (the possible values of an expression), `conditions` (what
is true of every row), `preimages` (from a key back to its columns), `narrowing` (the remaining groups), `constants`
(comparisons that can never be true), `advice` (the error for one of these), `contradictions` (conditions that exclude
each other).
"""
