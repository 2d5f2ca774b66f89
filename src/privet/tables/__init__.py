"""Declared tables, total expressions over their rows, person-local operators, and what can be asked of groups.

Every node (schema, expression, operator, aggregate, query, statement) validates itself when it is made, so that no
ill-typed tree can exist, whether it comes from Python, from SQL, from JSON or from its constructor.

What is declared: `schema` (tables and columns), `types` (the public range of a value), `units` (numbers as integers
of a unit), `rules` (how expressions are typed). What is asked: `expressions`, `language` (how Python writes them),
`notation` (an expression as a line of Python or SQL), `operators`, `aggregates`, `extremes`, `groups`, `caps` (how
many rows of a person), `arrangement` (order and limit of an answer), `query` (the question and its fluent face),
`statement` (what an engine is asked), `codec` (all of them as JSON).

What conditions leave, worked out from public facts alone: `reach` (what an expression can come to), `conditions` (what
is true of every row), `preimages` (from a key back to its columns), `narrowing` (which groups are left), `constants`
(comparisons that can never be true), `advice` (the error for one of these), `contradictions` (conditions that exclude
each other).
"""
