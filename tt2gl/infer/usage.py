"""How a kernel uses its parameters, read off its body: which are addresses, sizes, floats, flags, tiles.

A guess for kernels nobody gave a launch for, made from evidence: what is added up inside a `tl.load`, what is
compared with an index, what multiplies a float. Helpers are followed with the arguments they are given.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tt2gl.host.scopes import all_arguments
from tt2gl.infer.assembly import operands
from tt2gl.infer.body import Body, innermost, is_true, is_whole
from tt2gl.infer.calls import (
    ACCESSES,
    BLOCK_PARTS,
    BOUNDS,
    COUNTING,
    FLOAT_CALLS,
    FORMATS,
    INT_CALLS,
    LOOP_FLAGS,
    METHODS,
    OF_BITS,
    OF_INTEGERS,
    RANDOM_CALLS,
    RANGES,
    RESHAPING,
    SCALED_PARTS,
    SHAPED,
    THROUGH,
    WORDS,
    as_method,
)
from tt2gl.infer.evidence import SOME_DTYPE, Value, be_alike
from tt2gl.infer.kernel import DTYPES, Helpers
from tt2gl.infer.names import STRIDE_NAME
from tt2gl.infer.products import Product, operand_types, side
from tt2gl.infer.stored import note_stored, passed_on, stored


class Usage(Body):
    """Evidence for every parameter of one function; `helpers` finds the jit function that an expression names."""

    def __init__(
        self, node: ast.FunctionDef, helpers: Helpers, seen: Mapping[ast.FunctionDef, Usage] | None = None
    ) -> None:
        super().__init__(node)
        self.helpers = helpers
        self.seen = {**(seen or {}), node: self}
        self.casts: set[str] = set()
        self.products: list[Product] = []
        self._tensors: set[str] = set()
        self.scaled = self._makes_ranges = False
        self._accesses: list[Value] = []
        for _ in range(2):  # a loop's body reads what its end assigns
            self._body(node.body)
        self._settle()

    def _call(self, node: ast.Call) -> Value:
        node = as_method(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Name) and node.func.id in self.facts:
            self.facts[node.func.id].called = True
        helper = self.helpers(node.func)
        if helper is not None:
            return self._helper(*helper, node)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if isinstance(receiver, ast.Name) and receiver.id in self.facts and name not in ("to", "cast"):
            return self._method(node, receiver.id, name)
        described = self._locals.get(receiver.id) if isinstance(receiver, ast.Name) else None
        if described is not None and described.bases and name in METHODS and node.args:
            return self._described(node, described)
        if name in ACCESSES and (node.args or "pointer" in keywords):
            return self._access(node, name, keywords)
        return self._made(node, name, receiver, keywords)

    def _made(self, node: ast.Call, name: str, receiver: ast.expr | None, keywords: dict[str, ast.expr]) -> Value:
        """What a function of Triton's makes of its arguments, and what it says of them."""
        values = [self._value(argument) for argument in node.args]
        named = {key: self._value(value) for key, value in keywords.items()}
        if receiver is not None and name in RESHAPING and self._is_value(receiver):
            self._mark((base for value in values if name in SHAPED for base in value.bases), "tile")
            return self._value(receiver)
        for key in LOOP_FLAGS & named.keys() if name in RANGES else ():
            self._mark(named.pop(key).bases, "truth")
        passed = [*values, *named.values()]
        total = functools.reduce(operator.or_, passed) if passed else Value()
        if name in ("make_block_ptr", "make_tensor_descriptor", "_experimental_make_tensor_descriptor"):
            parts = dict(zip(BLOCK_PARTS, node.args, strict=False)) | keywords
            self._unit_stride(parts.get("strides"), parts.get("order"))
            return self._block(values, named)
        if name in RANGES or name in ("arange", "cdiv"):
            self._makes_ranges |= name == "arange"
            return self._counted(name, total)
        if name in SHAPED:
            shape = keywords.get("shape") or (node.args[SHAPED[name]] if len(node.args) > SHAPED[name] else None)
            if shape is not None:
                self._mark(self._value(shape).bases, "tile")
            if name in ("reshape", "view", "broadcast_to") and values:
                return values[0]
            total = replace(total, made=named["dtype"].made or SOME_DTYPE if "dtype" in named else "")
        for key in ("dtype", "out_dtype"):
            self._mark(named[key].bases if key in named else (), "dtype")
        if name == "dot":
            self._dot(values[:2], keywords.get("out_dtype"))
            for argument in keywords.values():
                self._word(keywords, argument)
            return Value(kind="float")
        if name == "dot_scaled":
            return self._dot_scaled([*zip(SCALED_PARTS, node.args, strict=False), *keywords.items()])
        if name == "static_assert" and node.args:
            self._require(node.args[0])
        if name == "inline_asm_elementwise":
            self._assembled(node)
        if name in ("to", "cast"):
            return self._cast(node, receiver, values)
        if name == "where" and len(values) == 3:
            return self._chosen(values, node.args)
        if name in RANDOM_CALLS:  # of a seed and offsets, integers all of them
            self._mark((*total.bases, *total.loaded), "whole")
            return Value((), total.origins, total.loaded, RANDOM_CALLS[name])
        if name in INT_CALLS:
            if name == "len" and node.args:
                self._taken(node.args[0], 1)
            return Value(kind="int")
        if name in FLOAT_CALLS:
            self._mark((base for value in values if len(value.origins) == 1 for base in value.bases), "float")
            return Value((), total.origins, total.loaded, "float")
        if name in THROUGH and values:
            return values[0]
        self._bounded(values if name in BOUNDS else [])
        if receiver is not None:
            total = self._value(receiver) | total
        return Value((), total.origins, total.loaded, total.kind, ranged=total.ranged)

    def _is_value(self, node: ast.expr) -> bool:
        """Whether what a method is called of is a value, and no module of functions."""
        match node:
            case ast.Name(id=name):
                return name in self._locals
            case ast.Attribute(value=value, attr=attribute):
                return attribute == "T" and self._is_value(value)
        return True

    def _method(self, node: ast.Call, owner: str, name: str) -> Value:
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            self._value(argument)
        if name in METHODS and node.args:
            indices = node.args[0]
            self.facts[owner].rank = len(indices.elts) if isinstance(indices, ast.List | ast.Tuple) else 2
            return Value(loaded=frozenset((owner,)))
        return self._name(owner)

    def _described(self, node: ast.Call, descriptor: Value) -> Value:
        """A tile of a descriptor that a name stands for: one that is made of a pointer, or one of the parameters."""
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            self._value(argument)
        if any(access.bases[:1] == descriptor.bases[:1] for access in self._accesses):
            return Value(loaded=frozenset(self._base(descriptor)))
        for name in descriptor.bases:
            self.facts[name].rank = len(node.args[0].elts) if isinstance(node.args[0], ast.List | ast.Tuple) else 2
        return Value(loaded=frozenset(descriptor.bases))

    def _access(self, node: ast.Call, name: str, keywords: Mapping[str, ast.expr]) -> Value:
        address = self._value(node.args[0] if node.args else keywords["pointer"])
        self._accesses.append(address)
        through = frozenset(self._base(address))
        for argument in [*node.args[1:], *(value for key, value in keywords.items() if key != "pointer")]:
            value = self._value(argument)
            self._word(keywords, argument)
            if argument is keywords.get("mask") or (name == "load" and node.args[1:] and argument is node.args[1]):
                for loaded in value.loaded:
                    self.facts[loaded].mask = True
            for pointer in through if argument is stored(node, keywords) and name == "store" else ():
                note_stored(self.facts[pointer], value)
        if name in OF_INTEGERS or name in COUNTING and len(node.args) > 1 and is_whole(node.args[1]):
            self._mark(through, "whole")
        ranged = address.ranged or bool(address.scales)
        return Value((), frozenset(), through, "", through, ranged=ranged)

    def _word(self, keywords: Mapping[str, ast.expr], argument: ast.expr) -> None:
        """An option that is a word (`eviction_policy=POLICY`): the word for none, or what every target knows."""
        for key, word in WORDS.items():
            if argument is keywords.get(key) and isinstance(argument, ast.Name) and argument.id in self.facts:
                self.facts[argument.id].strings.append(word)

    def _block(self, values: list[Value], named: Mapping[str, Value]) -> Value:
        parts = {**dict(zip(BLOCK_PARTS, values, strict=False)), **named}
        base = parts.get("base", Value())
        self._accesses.append(Value(base.bases[:1], base.origins))
        for key, fact in (("shape", "size"), ("strides", "stride"), ("offsets", "offset"), ("block_shape", "tile")):
            if key in parts:
                self._mark(parts[key].bases, fact)
        return base

    def _assembled(self, node: ast.Call) -> None:
        for argument, dtype in operands(node):
            value = self._value(argument)
            for name in value.raw if not value.made else ():
                self.facts[name].element = self.facts[name].element or dtype

    def _unit_stride(self, strides: ast.expr | None, order: ast.expr | None) -> None:
        """That one of a block's strides is 1: the last, or that of the dimension that `order` has first."""
        stride = innermost(strides, order)
        self._mark(self._value(stride).bases if stride is not None else (), "unit")

    def _dot(self, values: list[Value], made: ast.expr | None) -> None:
        for value in values:
            if value.kind == "float":  # of what is computed, much is no operand: rows' maxima, biases
                continue
            for name in value.loaded or value.bases:
                self.facts[name].dot = True
                self.facts[name].narrow |= isinstance(made, ast.Attribute) and made.attr == "int32"
        self.products.append(functools.reduce(operator.or_, map(side, values), Product(frozenset())))

    def _dot_scaled(self, arguments: Iterable[tuple[str, ast.expr]]) -> Value:
        """A product of operands with scales: their formats say what operands and scales are made of."""
        self.scaled, parts = True, dict(arguments)
        for side_of in ("lhs", "rhs"):
            element = ""
            match parts.get(f"{side_of}_format"):
                case ast.Constant(value=written):
                    element = FORMATS.get(str(written), "")
                case ast.Name(id=name) if name in self.facts:
                    self.facts[name].strings.append("e4m3")  # of which no two share a byte
                    element = FORMATS.get(self.facts[name].strings[0], "")
            for part, dtype in ((side_of, element), (f"{side_of}_scale", "u8")):
                value = self._value(parts[part]) if part in parts else Value()
                for name in value.loaded or value.bases:
                    self.facts[name].element = self.facts[name].element or dtype
        return Value(kind="float")

    def _cast(self, node: ast.Call, receiver: ast.expr | None, values: list[Value]) -> Value:
        plain = receiver is not None and (ast.unparse(node.func).endswith(".to") or self._is_value(receiver))
        value = self._value(receiver) if plain and receiver is not None else values[0] if values else Value()
        target = node.args[0 if plain else 1] if len(node.args) > (0 if plain else 1) else None
        kind = value.kind
        if plain and isinstance(receiver, ast.Name) and receiver.id in self.facts:
            self._tensors.add(receiver.id)
        made = (self._value(target).made if isinstance(target, ast.Name | ast.Attribute) else "") or SOME_DTYPE
        if isinstance(target, ast.Name):
            self._mark(self._value(target).bases, "dtype")
        if isinstance(target, ast.Call) and "pointer_type" in ast.dump(target.func):
            whole = receiver if plain else node.args[0] if node.args else None
            self._pointed_to(whole, value, target)
        if isinstance(target, ast.Attribute):
            self.casts.add(target.attr)
            size = re.search(r"\d+", target.attr)
            if size and any(word.arg == "bitcast" and is_true(word.value) for word in node.keywords):
                for name in value.loaded if not value.kind else ():
                    if "float" in target.attr:
                        self.facts[name].element = self.facts[name].element or OF_BITS.get(int(size.group()), "")
                    else:
                        self.facts[name].bits = int(size.group())
                return Value(kind="int" if "int" in target.attr else "float", made=made)
            if target.attr.startswith(("int", "uint")):
                kind = "int"
                # Casting what was loaded to an integer says nothing of a float's pointer; to int64, mostly of an index.
            elif "float" in target.attr:
                self._mark(value.bases, "number")
        like = self._sharers(target)
        return replace(value, kind=kind, raw=value.raw if kind == "int" else frozenset(), made=made, like=like)

    def _pointed_to(self, cast: ast.expr | None, value: Value, target: ast.Call) -> None:
        """Addresses that are loaded or computed are numbers; a parameter that is one as it comes may be a pointer."""
        match cast, target.args:
            case ast.Name(id=name), [ast.Attribute(attr=element), *_] if value.bases == (name,) and element in DTYPES:
                self.facts[name].element = self.facts[name].element or DTYPES[element]
                self.facts[name].address = True
            case _:
                for mark in ("whole", "wide"):
                    self._mark((*value.bases, *value.loaded), mark)

    def _sharers(self, target: ast.expr | None) -> frozenset[str]:
        """The parameters whose elements have the dtype that is cast to: `x.dtype`, `x_ptr.dtype.element_ty`."""
        match target:
            case ast.Attribute(value=ast.Attribute(value=pointer, attr="dtype"), attr="element_ty"):
                return frozenset(self._value(pointer).bases)
            case ast.Attribute(value=value, attr="dtype"):
                found = self._value(value)
                return found.loaded if not found.kind and not found.made else found.like
        return frozenset()

    def _helper(self, helper: ast.FunctionDef, helpers: Helpers, node: ast.Call) -> Value:
        parameters = [arg.arg for arg in all_arguments(helper.args)]
        arguments = dict(zip(parameters, self._given(node), strict=False))
        arguments |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        values = {name: self._value(argument) for name, argument in arguments.items()}
        usage = self.seen.get(helper) or Usage(helper, helpers, self.seen)
        self.seen[helper] = usage
        if usage is not self:
            for name, value in values.items():
                found = usage.facts.get(name)
                if found is None:
                    continue
                if isinstance(arguments[name], ast.Tuple | ast.List):  # what is in a tuple is none
                    found = replace(found, items=0)
                if found.address:
                    self._accesses.append(value)
                    for base in self._base(value):
                        kept = self.facts[base]
                        for mark in ("index", "mask", "dot", "narrow", "whole", "packed", "wide", "unsigned"):
                            setattr(kept, mark, getattr(kept, mark) or getattr(found, mark))
                        kept.element = kept.element or found.element
                        passed_on(kept, found, values, usage.facts)
                        kept.bits = max(kept.bits, found.bits)
                        kept.items = max(kept.items, found.items)
                elif len(value.bases) == 1 and len(value.origins) == 1:
                    self.facts[value.bases[0]].merge(found)
                for base in value.loaded if not value.kind else value.raw:
                    self.facts[base].dot |= found.dot
                    self.facts[base].element = self.facts[base].element or found.element
                    self.facts[base].index |= found.offset
                    self.facts[base].whole |= found.whole
                    self.facts[base].packed |= found.packed or found.whole
                    self.facts[base].wide |= found.wide
                    self.facts[base].unsigned |= found.unsigned and not value.kind and not value.made
            self.casts, self.scaled = self.casts | usage.casts, self.scaled | usage.scaled
            self.products += [self._passed(product, usage, values) for product in usage.products]
            if usage._makes_ranges:  # else it spreads what it is given, whatever the shape
                self.rank = max(self.rank, usage.rank)
        loaded = frozenset[str]().union(*(value.loaded for value in values.values()))
        if usage is not self:
            through = [values[name] for name in usage.returned.loaded if name in values and usage.facts[name].address]
            loaded = loaded.union(*map(self._base, through))
        made_of = [values[name] for name in usage.returned.bases if name in values and usage is not self]
        # An address may be put together in a helper.
        bases = dict.fromkeys(base for value in made_of for base in value.bases)
        return Value(tuple(bases), frozenset[str]().union(*(value.origins for value in made_of)), loaded)

    def _passed(self, product: Product, helper: Usage, values: Mapping[str, Value]) -> Product:
        """A helper's product as its caller's."""
        passed = Product(frozenset(), product.made, product.plain)
        for name in sorted(product.names & values.keys()):
            value = values[name]
            address = helper.facts[name].address
            passed |= Product(frozenset(self._base(value))) if address else side(value)
        return passed

    # ---------------------------------------------------------------------------------------------- result

    @functools.cached_property
    def operands(self) -> Mapping[str, str]:
        """The dtypes that products ask of what is read through parameters."""
        return operand_types(self.products)

    def _base(self, address: Value) -> tuple[str, ...]:
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
        self._mark(self._inner_strides(), "unit")
        for name in self._tensors:  # an argument that is 1 is a number, which has no methods
            self.facts[name].unit = False
        for _ in range(2):  # what stands for a name in turn may do so by way of a third
            for pair in self._either:
                for one, other in (pair, pair[::-1]):
                    if any(self.facts[name].address for name in one) and not self._addressed(other):
                        self._mark(self._base(Value(other)), "address")
                be_alike(*(self.facts[name] for side in pair for name in self._base(Value(side))))
        for names, loaded in self._beside:
            if not any(self.facts[name].index or self.facts[name].whole for name in loaded):
                self._mark((name for name in names if not self.facts[name].whole), "float")

    def _inner_strides(self) -> set[str]:
        """The strides of last dimensions: of a tensor whose every index range is multiplied, the last that does it."""
        names = list(self.facts)
        inner: set[str] = set()
        outer: set[str] = set()
        for address in self._accesses:
            scales = sorted(address.scales, key=names.index)
            named = all(STRIDE_NAME.search(name) for name in scales)
            strides = named or (len(scales) > 1 and not any(self.facts[name].size for name in scales))
            last = len(scales) - 1 if strides and not address.ranged else len(scales)
            outer.update(scales[:last])
            inner.update(scales[last:])
        return inner - outer

    def _addressed(self, names: Iterable[str]) -> bool:
        return any(self.facts[name].address for name in names)
