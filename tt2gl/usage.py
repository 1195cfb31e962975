"""How a kernel uses its parameters, read off its body: which are addresses, sizes, floats, flags, tiles.

A guess for kernels nobody gave a launch for, made from evidence: what is added up inside a `tl.load`, what is
compared with an index, what multiplies a float. Helpers are followed with the arguments they are given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tt2gl.host.scopes import all_arguments

_ACCESSES = {"load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas", "atomic_and",
             "atomic_or", "atomic_xor", "buffer_load", "buffer_store", "async_copy_global_to_shared"}  # fmt: skip
_FLOAT_CALLS = {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sqrt_rn", "sigmoid", "tanh", "sin", "cos", "erf",
                "div_rn", "fdiv", "softmax", "dot", "rand", "randn", "log1p", "expm1", "pow", "floor",
                "ceil"}  # fmt: skip
_INT_CALLS = {"program_id", "num_programs", "arange", "cdiv", "argmax", "argmin", "randint", "len"}
_SHAPED = {"zeros": 0, "full": 0, "ones": 0, "reshape": 1, "view": 1, "broadcast_to": 1}
_WHOLE = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
_WORDS = {"eviction_policy": "", "cache_modifier": "", "sem": "relaxed", "scope": "gpu"}
_RANGES = {"range", "static_range"}
_THROUGH = {
    "multiple_of",
    "max_contiguous",
    "max_constancy",
    "advance",
    "broadcast_to",
    "expand_dims",
    "reshape",
    "trans",
    "cast",
}


@dataclass
class Facts:
    """The evidence for one parameter."""

    address: bool = False
    offset: bool = False
    size: bool = False
    stride: bool = False
    multiplied: bool = False
    number: bool = False
    float: bool = False
    truth: bool = False
    tile: bool = False
    dtype: bool = False
    none: bool = False
    called: bool = False
    whole: bool = False
    """It, or what is loaded through it, is divided with a remainder, shifted, or taken as bits."""
    wide: bool = False
    """Whole, and of 64 bits."""
    index: bool = False
    """Loaded values are indices or labels."""
    mask: bool = False
    """Loaded values are conditions."""
    dot: bool = False
    """Loaded values are operands of a matrix product."""
    bits: int = 0
    """Bits of a loaded value that is reinterpreted, 0 where none is."""
    rank: int = 0
    """Indices of a descriptor's `load`, 0 where it is no descriptor."""
    strings: list[str] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)

    @property
    def integer(self) -> bool:
        """Whether it is surely an integer."""
        return self.offset or self.size or self.stride or self.tile or self.whole

    def merge(self, other: Facts) -> None:
        """Add another function's evidence for the same value."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, list):
                mine.extend(item for item in value if item not in mine)
            else:
                setattr(self, name, max(mine, value))


@dataclass(frozen=True)
class _Value:
    """What an expression is made of. `bases`: parameters added up, so that one may be an address."""

    bases: tuple[str, ...] = ()
    origins: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    kind: str = ""

    def __or__(self, other: _Value) -> _Value:
        kinds = {self.kind, other.kind}
        kind = "float" if "float" in kinds else self.kind if len(kinds) == 1 else ""
        return _Value(
            (*self.bases, *(base for base in other.bases if base not in self.bases)),
            self.origins | other.origins,
            self.loaded | other.loaded,
            kind,
        )


Helpers = Callable[[ast.expr], ast.FunctionDef | None]


class Usage(ast.NodeVisitor):
    """Evidence for every parameter of one function; `helpers` finds the jit function that an expression names."""

    def __init__(
        self, node: ast.FunctionDef, helpers: Helpers, seen: Mapping[ast.FunctionDef, Usage] | None = None
    ) -> None:
        self.node = node
        self.helpers = helpers
        self.seen = {**(seen or {}), node: self}
        self.names = [arg.arg for arg in all_arguments(node.args)]
        self.facts = {name: Facts() for name in self.names}
        self.casts: set[str] = set()
        self.plain_dot = False
        self.rank = 1
        """The most dimensions that an index range is spread over."""
        self._makes_ranges = False
        self._locals: dict[str, _Value] = {}
        self._accesses: list[_Value] = []
        self._beside: list[tuple[tuple[str, ...], frozenset[str]]] = []
        """Parameters that meet a loaded value in an operation: floats, unless what was loaded is an index."""
        self._either: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        """Parameters that one name stands for in turn: where one is an address, so is the other."""
        for _ in range(2):  # a loop's body reads what its end assigns
            self._body(node.body)
        self._settle()

    def evidence(self, name: str) -> Facts:
        """The evidence for a parameter."""
        return self.facts.get(name, Facts())

    # ----------------------------------------------------------------------------------------- statements

    def _body(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Assign(targets=targets, value=value):
                    result = self._value(value)
                    for target in targets:
                        self._bind(target, result, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._bind(target, self._value(value), value)
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    self._locals[name] = self._binary(op, self._name(name), self._value(value))
                case ast.For(target=target, iter=iterable, body=inner, orelse=orelse):
                    self._value(iterable)
                    self._bind(target, _Value(kind="int"), None)
                    self._body(inner)
                    self._body(orelse)
                case ast.If(test=test, body=inner, orelse=orelse) | ast.While(test=test, body=inner, orelse=orelse):
                    self._truth(test)
                    self._body(inner)
                    self._body(orelse)
                case ast.With(body=inner):
                    self._body(inner)
                case ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
                    self._value(value)
                case ast.Assert(test=test):
                    self._truth(test)

    def _bind(self, target: ast.expr, value: _Value, source: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                before = self._locals.get(name)
                if before is not None:
                    self._alternatives(before, value)
                self._locals[name] = value if before is None else before | value
            case ast.Tuple(elts=targets):
                values = source.elts if isinstance(source, ast.Tuple) and len(source.elts) == len(targets) else None
                for index, element in enumerate(targets):
                    self._bind(element, self._value(values[index]) if values else _Value(kind=value.kind), None)

    def _alternatives(self, one: _Value, other: _Value) -> None:
        if one.bases and other.bases and not set(one.bases) & set(other.bases):
            self._either.append((one.bases, other.bases))

    # ---------------------------------------------------------------------------------------- expressions

    def _name(self, name: str) -> _Value:
        if name in self._locals:
            return self._locals[name]
        if name in self.facts:
            return _Value((name,), frozenset((name,)))
        return _Value()

    def _value(self, node: ast.expr) -> _Value:
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Constant(value=bool()):
                return _Value()
            case ast.Constant(value=int(value)):
                return _Value(kind="wide" if abs(value) >= 2**31 else "int")
            case ast.Constant(value=float()):
                return _Value(kind="float")
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._truth(operand)
                return _Value()
            case ast.UnaryOp(operand=operand):
                return self._value(operand)
            case ast.BoolOp(values=values):
                for value in values:
                    self._truth(value)
                return _Value()
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._truth(test)
                one, other = self._value(body), self._value(orelse)
                self._alternatives(one, other)
                return one | other
            case ast.Subscript(value=value, slice=places):
                if isinstance(places, ast.Tuple) and any(_is_none(place) for place in places.elts):
                    self.rank = max(self.rank, len(places.elts))
                return self._value(value)
            case ast.Attribute(value=value, attr=attribute):
                inner = self._value(value)
                return inner if attribute in ("T", "value") else _Value()
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                result = _Value()
                for element in elements:
                    result |= self._value(element)
                return result
            case ast.Call():
                return self._call(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
        return _Value()

    def _binary(self, op: ast.operator, left: _Value, right: _Value) -> _Value:
        result = left | right
        if isinstance(op, _WHOLE) and "float" not in (left.kind, right.kind):
            return self._whole(op, left, right)
        if isinstance(op, ast.Add | ast.Sub):
            for one, other in ((left, right), (right, left)):
                if other.kind == "float" and len(one.origins) == 1:
                    self._mark(one.bases, "float")
            return result
        for one, other in ((left, right), (right, left)):
            self._mark(one.bases, "number")
            if not isinstance(op, ast.Div):
                self._mark(one.bases, "multiplied")
            if other.kind == "float":
                self._mark(one.bases, "float")
            elif other.loaded and not other.kind:
                self._beside.append((one.bases, other.loaded))
            elif isinstance(op, ast.Mult) and other.kind == "int":
                self._mark(one.bases, "stride")
        kind = "float" if isinstance(op, ast.Div) else result.kind
        return _Value((), result.origins, result.loaded, kind)

    def _whole(self, op: ast.operator, left: _Value, right: _Value) -> _Value:
        """`//`, `%`, shifts and bitwise operations; of two conditions `&` and `|` say nothing."""
        for value, other in ((left, right), (right, left)):
            if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and other.kind not in ("int", "wide"):
                continue
            marks = ["whole", "wide"] if other.kind == "wide" else ["whole"]
            loaded = value.loaded if not value.kind else ()
            for mark in marks:
                self._mark((*value.bases, *loaded), mark)
            if not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
                self._mark(value.bases, "number")
                self._mark(value.bases, "multiplied")
        kinds = [kind for kind in (left.kind, right.kind) if kind not in ("int", "wide")]
        return _Value((), left.origins | right.origins, left.loaded | right.loaded, "int" if not kinds else kinds[0])

    def _compare(self, node: ast.Compare) -> _Value:
        operands = [node.left, *node.comparators]
        values = [self._value(operand) for operand in operands]
        for left, right, op, one, other in zip(values, values[1:], node.ops, operands, operands[1:], strict=False):
            for value, opposite, constant in ((left, right, other), (right, left, one)):
                self._compared(value, opposite, constant, op)
        return _Value()

    def _compared(self, value: _Value, opposite: _Value, constant: ast.expr, op: ast.cmpop) -> None:
        match constant:
            case ast.Constant(value=None):
                self._mark(value.bases, "none")
            case ast.Constant(value=bool()):
                self._mark(value.bases, "truth")
            case ast.Constant(value=str() as text):
                for name in value.bases:
                    self.facts[name].strings.append(text)
            case ast.Constant(value=int() as number):
                for name in value.bases:
                    self.facts[name].integers.append(number)
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if isinstance(op, ast.In | ast.NotIn):
                for element in elements:
                    self._compared(value, opposite, element, op)
            case ast.Attribute(attr=attribute) if attribute.startswith(("float", "bfloat", "int", "fp8")):
                self._mark(value.bases, "dtype")
            case _ if opposite.kind == "int" and len(value.origins) == 1:
                self._mark(value.bases, "size")
            case _ if opposite.kind == "float":
                self._mark(value.bases, "float")
            case _ if opposite.loaded and not isinstance(op, ast.Eq | ast.NotEq):
                self._beside.append((value.bases, opposite.loaded))
        if isinstance(op, ast.Eq | ast.NotEq) and value.loaded and not value.kind and opposite.bases:
            for name in value.loaded:
                self.facts[name].index = True

    def _truth(self, node: ast.expr) -> None:
        value = self._value(node)
        if isinstance(node, ast.Name | ast.Call):
            self._mark(value.bases, "truth")
            for name in value.loaded:
                self.facts[name].mask = True

    def _mark(self, names: Iterable[str], fact: str) -> None:
        for name in names:
            setattr(self.facts[name], fact, True)

    # ---------------------------------------------------------------------------------------------- calls

    def _call(self, node: ast.Call) -> _Value:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Name) and node.func.id in self.facts:
            self.facts[node.func.id].called = True
        helper = self.helpers(node.func)
        if helper is not None:
            return self._helper(helper, node)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if receiver is not None and isinstance(receiver, ast.Name) and receiver.id in self.facts:
            return self._method(node, receiver.id, name)
        if name in _ACCESSES and (node.args or "pointer" in keywords):
            return self._access(node, name, keywords)
        values = [self._value(argument) for argument in node.args]
        named = {key: self._value(value) for key, value in keywords.items()}
        total = _Value()
        for value in [*values, *named.values()]:
            total |= value
        if name in ("make_block_ptr", "make_tensor_descriptor", "_experimental_make_tensor_descriptor"):
            return self._block(values, named)
        if name in _RANGES or name in ("arange", "cdiv"):
            self._mark(total.bases, "tile" if name == "arange" else "size")
            self._makes_ranges |= name == "arange"
            self._mark(total.origins, "number")
            for loaded in total.loaded:
                self.facts[loaded].index = True
            return _Value((), total.origins, frozenset(), "int")
        if name in _SHAPED:
            shape = keywords.get("shape") or (node.args[_SHAPED[name]] if len(node.args) > _SHAPED[name] else None)
            if shape is not None:
                self._mark(self._value(shape).bases, "tile")
            if name in ("reshape", "view", "broadcast_to") and values:
                return values[0]
        for key in ("dtype", "out_dtype"):
            self._mark(named[key].bases if key in named else (), "dtype")
        if name == "dot":
            self._dot(node.args[:2], values[:2])
            return _Value(kind="float")
        if name in ("to", "cast"):
            return self._cast(node, receiver, values)
        if name == "where" and len(values) == 3:
            for loaded in values[0].loaded:
                self.facts[loaded].mask = True
            self._alternatives(values[1], values[2])
            return values[1] | values[2]
        if name in _INT_CALLS:
            return _Value(kind="int")
        if name in _FLOAT_CALLS:
            self._mark((base for value in values if len(value.origins) == 1 for base in value.bases), "float")
            return _Value((), total.origins, total.loaded, "float")
        if name in _THROUGH and values:
            return values[0]
        if receiver is not None:
            total = self._value(receiver) | total
        return _Value((), total.origins, total.loaded, total.kind)

    def _method(self, node: ast.Call, owner: str, name: str) -> _Value:
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            value = self._value(argument)
            if name == "to":
                self._mark(value.bases, "dtype")
        if name in ("load", "store", "gather", "scatter", "atomic_add") and node.args:
            indices = node.args[0]
            self.facts[owner].rank = len(indices.elts) if isinstance(indices, ast.List | ast.Tuple) else 2
            return _Value(loaded=frozenset((owner,)))
        return self._name(owner)

    def _access(self, node: ast.Call, name: str, keywords: Mapping[str, ast.expr]) -> _Value:
        address = self._value(node.args[0] if node.args else keywords["pointer"])
        self._accesses.append(address)
        for argument in [*node.args[1:], *(value for key, value in keywords.items() if key != "pointer")]:
            value = self._value(argument)
            self._word(keywords, argument)
            if argument is keywords.get("mask") or (name == "load" and node.args[1:] and argument is node.args[1]):
                for loaded in value.loaded:
                    self.facts[loaded].mask = True
        return _Value((), frozenset(), frozenset(self._base(address)))

    def _word(self, keywords: Mapping[str, ast.expr], argument: ast.expr) -> None:
        """An option of an access that is a word (`eviction_policy=POLICY`): the word for none."""
        for key, word in _WORDS.items():
            if argument is keywords.get(key) and isinstance(argument, ast.Name) and argument.id in self.facts:
                self.facts[argument.id].strings.append(word)

    def _block(self, values: list[_Value], named: Mapping[str, _Value]) -> _Value:
        order = ("base", "shape", "strides", "offsets", "block_shape")
        parts = {**dict(zip(order, values, strict=False)), **named}
        base = parts.get("base", _Value())
        self._accesses.append(_Value(base.bases[:1], base.origins))
        for key, fact in (("shape", "size"), ("strides", "stride"), ("offsets", "offset"), ("block_shape", "tile")):
            if key in parts:
                self._mark(parts[key].bases, fact)
        return base

    def _dot(self, operands: list[ast.expr], values: list[_Value]) -> None:
        for operand, value in zip(operands, values, strict=False):
            for name in value.loaded:
                self.facts[name].dot = True
            direct = value.loaded and not value.kind
            cast = any(isinstance(inner, ast.Attribute) and inner.attr == "to" for inner in ast.walk(operand))
            if not direct and not cast:
                self.plain_dot = True

    def _cast(self, node: ast.Call, receiver: ast.expr | None, values: list[_Value]) -> _Value:
        plain = isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        value = self._value(receiver) if plain and receiver is not None else values[0] if values else _Value()
        target = node.args[0 if plain else 1] if len(node.args) > (0 if plain else 1) else None
        kind = value.kind
        if isinstance(target, ast.Name) and target.id in self.facts:
            self.facts[target.id].dtype = True
        if isinstance(target, ast.Call) and "pointer_type" in ast.dump(target.func):
            for mark in ("whole", "wide"):
                self._mark((*value.bases, *value.loaded), mark)
        if isinstance(target, ast.Attribute):
            self.casts.add(target.attr)
            size = re.search(r"\d+", target.attr)
            if size and any(word.arg == "bitcast" and _is_true(word.value) for word in node.keywords):
                for name in value.loaded if not value.kind else ():
                    self.facts[name].bits = int(size.group())
                return _Value(kind="int" if "int" in target.attr else "float")
            if target.attr.startswith(("int", "uint")):
                kind = "int"
                # Casting what was loaded to an integer says nothing of a float's pointer; to int64, mostly of an index.
            elif "float" in target.attr:
                self._mark(value.bases, "number")
        return _Value(value.bases, value.origins, value.loaded, kind)

    def _helper(self, helper: ast.FunctionDef, node: ast.Call) -> _Value:
        parameters = [arg.arg for arg in all_arguments(helper.args)]
        arguments = dict(zip(parameters, node.args, strict=False))
        arguments |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        values = {name: self._value(argument) for name, argument in arguments.items()}
        usage = self.seen.get(helper)
        if usage is None:
            usage = Usage(helper, self.helpers, self.seen)
            self.seen[helper] = usage
        if usage is not self:
            for name, value in values.items():
                found = usage.facts.get(name)
                if found is None:
                    continue
                if found.address:
                    self._accesses.append(value)
                    for base in self._base(value):
                        kept = self.facts[base]
                        kept.index |= found.index
                        kept.mask |= found.mask
                        kept.dot |= found.dot
                        kept.whole |= found.whole
                        kept.wide |= found.wide
                        kept.bits = max(kept.bits, found.bits)
                elif len(value.bases) == 1 and len(value.origins) == 1:
                    self.facts[value.bases[0]].merge(found)
                for base in value.loaded if not value.kind else ():
                    self.facts[base].whole |= found.whole
                    self.facts[base].wide |= found.wide
            self.casts |= usage.casts
            self.plain_dot |= usage.plain_dot
            if usage._makes_ranges:  # else it spreads what it is given, whatever the shape
                self.rank = max(self.rank, usage.rank)
        loaded = frozenset[str]().union(*(value.loaded for value in values.values()))
        return _Value(loaded=loaded)

    # ---------------------------------------------------------------------------------------------- result

    def _base(self, address: _Value) -> tuple[str, ...]:
        """Of the parameters added up in an address, the one that is the pointer."""
        candidates = [name for name in address.bases if not self.facts[name].multiplied] or list(address.bases)
        named = [name for name in candidates if "ptr" in name.lower()]
        return tuple((named or candidates)[:1])

    def _settle(self) -> None:
        for address in self._accesses:
            base = self._base(address)
            self._mark(base, "address")
            self._mark((name for name in address.origins if name not in base), "offset")
            for name in address.loaded:
                self.facts[name].index = True
        for _ in range(2):  # what stands for a name in turn may do so by way of a third
            for pair in self._either:
                for one, other in (pair, pair[::-1]):
                    if any(self.facts[name].address for name in one) and not self._addressed(other):
                        self._mark(self._base(_Value(other)), "address")
        for names, loaded in self._beside:
            if not any(self.facts[name].index or self.facts[name].whole for name in loaded):
                self._mark((name for name in names if not self.facts[name].whole), "float")

    def _addressed(self, names: Iterable[str]) -> bool:
        return any(self.facts[name].address for name in names)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
