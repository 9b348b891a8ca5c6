"""Formulas of the command line, such as `0.02 * sqrt(Buffer.size)`."""

import ast
import operator
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ..sweeps.values import axis_error

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": jnp.sqrt,
    "exp": jnp.exp,
    "log": jnp.log,
    "log2": jnp.log2,
    "min": jnp.minimum,
    "max": jnp.maximum,
}
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FORMS = f"use numbers, names, + - * / **, {', '.join(_FUNCTIONS)}"


def read_formula(place: str, text: str, names: set[str]) -> Callable[[dict[str, Any]], Any]:
    """A formula over `names`, which may hold dots, as a function of their values.

    **Raises:** `SpecError` for what is no such formula.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise axis_error(place, f'"{text}" is no formula', FORMS) from None
    return _node(place, text, tree, names)


def _node(place: str, text: str, node: ast.AST, names: set[str]) -> Callable[[dict[str, Any]], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        number = float(node.value)
        return lambda values: number
    if isinstance(node, ast.Name | ast.Attribute):
        name = ast.unparse(node)
        if name not in names:
            raise axis_error(place, f'"{name}" in "{text}" does not vary', f"known: {', '.join(sorted(names))}")
        return lambda values: values[name]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        apply, left, right = _OPERATORS[type(node.op)], node.left, node.right
        first, second = (_node(place, text, side, names) for side in (left, right))
        return lambda values: apply(first(values), second(values))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        apply, inner = _OPERATORS[type(node.op)], _node(place, text, node.operand, names)
        return lambda values: apply(inner(values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        function = _FUNCTIONS[node.func.id]
        arguments = [_node(place, text, argument, names) for argument in node.args]
        if not node.keywords and len(arguments) == (2 if node.func.id in ("min", "max") else 1):
            return lambda values: function(*(argument(values) for argument in arguments))
    raise axis_error(place, f'"{ast.unparse(node)}" in "{text}" is no part of a formula', FORMS)
