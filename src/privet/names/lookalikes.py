"""Names of datasets: their normal form, and pairs that readers could confuse.

Claim: `confusable` is symmetric, and true for two names that differ only in details that are easily overlooked: case,
spaces, hyphens and underscores, accents, invisible characters, and characters that look like ASCII letters or digits.

Reference: the skeletons of Unicode Technical Standard #39, section 4. `_LOOKS` follows its list of confusables
(confusables.txt, (c) Unicode, Inc., Unicode License v3) for characters that look like ASCII, and also ignores case.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

_LOOKS = {
    ",": "‚",
    ".": "•∙⋅・",
    "/": "⁄∕",
    "2": "ƧƻϨᒿꙄꛯꝚ",
    "3": "ƷȜЗзҘӠⳌꝪꞫ\U000118ca\U00016f3b\U0001d206",
    "4": "ЧчᏎ\U000118af",
    "5": "Ƽ\U000118bb",
    "6": "бᏮⳒ\U000118d5",
    "7": "\U000104d2\U000118c6\U0001d212",
    "8": "Ȣȣ৪੪ଃ\U0001031a\U0001e8cb",
    "9": "৭੧୨൭ⳊꝮ\U000118ac\U000118cc\U000118d6",
    "A": "ⲀΑАᎪᗅꓮ\U000102a0\U00016f40",
    "a": "ɑαа⍶⍺",
    "B": "ⲂßΒВᏴᗷꓐꞴ\U00010282\U000102a1\U00010301",
    "b": "ƄɓʙβБЬвъѢѣҌҍᏏᑲᑳᒈᖯ",
    "C": "ϹСҪᏟ₡Ⲥꓚ\U000102a2\U00010302\U00010415\U0001051c\U000118e9\U000118f2\U0001f16e\U0001f74c",
    "c": "¢ςϲсҫⲥꮯ\U0001043d",
    "D": "ÐƉᎠᗞᗪꓓ",
    "d": "ðԁժᏧᑯᒇ₫ꓒ",
    "E": "ⲈЕᎬ⋿ⴹꓰ\U00010286\U000118a6\U000118ae",
    "e": "ɛΕεЄеєҽҿ℮",
    "F": "Ϝᖴꓝ\U00010287\U000102a5\U00010525\U000118a2\U000118c2\U0001d213",
    "f": "ſքẝꬵ",
    "G": "ԌᏀᏳꓖ",
    "g": "ƍɡց",
    "H": "ΗНҢӇӉᎻᕼⲎꓧ\U000102cf",
    "h": "нђћһհᏂᏲꚕ",
    "i": "ɩ˛ͺιіӏᎥᵼ⍳⍸ꙇꭵ\U000118c3",
    "J": "ͿЈᎫᒍꓙ",
    "j": "ϳј",
    "K": "ΚКҚҞᏦᛕ₭Ⲕꓗ\U00010518",
    "k": "ĸκк",
    "L": "ᏞᒪⳐꓡ\U0001041b\U00010526\U000118a3\U000118b2\U00016f16\U0001d22a",
    "l": "ƖΙІӀ\u05c0\u05d5\u05df\u05f1\u0627\u0673\u07caᛁ⏽Ⲓⵏꓲ\U0001028a\U00010309\U00010320\U00016f28\U0001e8c7",
    "M": "ΜϺМӍᎷᗰᛖⲘꓟ\U000102b0\U00010311",
    "N": "ΝⲚꓠ\U0001018e\U00010513",
    "n": "ηπпոռ",
    "O": "ΟОѲՕଠዐᎤᎾᏫ⊖⊝⍬Ⲟⴱⵁⵔ〇ꓳ\U00010292\U000102ab\U00010404\U000104c2\U00010516\U000118b5\U0001d21a\U0001f714",
    "o": "ΘθοσоѳӨөօ\u05e1\u0647\u0665\u06be\u06c1\u06d5۵\u06ffంಂംഠංဝჿⲟꭴꮎꮻ\U0001042c\U000104ea\U000118c8\U000118d7",
    "P": "ΡРᏢᑭᒆⲢꓑ\U00010295",
    "p": "Þþρр⍴ⲣ",
    "Q": "Ԛⵕ",
    "q": "ԛգզ",
    "R": "ƦᎡᏒᖇꓣ\U000104b4\U00016f35\U0001d216",
    "r": "Γгґғᴦⲅꭈꮁ",
    "S": "ЅՏᏕᏚꓢ\U00010296\U00010420\U00016f3a",
    "s": "ƽѕꮪ\U00010448\U000118c1",
    "T": "ΤТҬᎢ₮⊤⍡⟙Ⲧꓔ\U00010297\U000102b1\U00010315\U000118bc\U00016f0a\U0001f768",
    "t": "τт",
    "U": "ՍሀᏌᑌᑧ∪⋃ꓴ\U000104ce\U000118b8\U00016f42",
    "u": "ʋμυицџսꞟꮜ\U000104f6\U000118d8",
    "V": "Ѵ\u0667۷Ꮩᐯⴸꓦꛟ\U00010197\U0001051d\U000118a0\U00016f08\U0001d20d\U0001f708",
    "v": "νѵ\u05d8∨⋁ꮩ\U00011706\U000118c0",
    "W": "ᎳᏔ₩ꓪ\U000118e6\U000118ef",
    "w": "ɯωϣШЩшщѡѽԜԝաꝡꮃ\U000114c5\U0001170a\U0001170e\U0001170f",
    "X": "ΧХҲ᙭ᚷ╳ⲬⵝꓫꞳ\U00010196\U00010290\U000102b4\U00010317\U00010322\U00010527\U000118ec",
    "x": "×χхᕁᕽ᙮⤫⤬⨯⨰",
    "Y": "¥ΥУҮҰᎩᎽⲨꓬ\U000102b2\U000118a4\U00016f43",
    "y": "ɣγуүұყᶌ\U000118dc",
    "Z": "ΖᏃꓜ\U000102f5\U000118a9\U000118e5",
    "z": "ζꮓ\U000118c4",
    "|": "ǀ∣│┃❘｜",
    "Л": "Λ",
    "П": "Π",
    "Ф": "Φ",
    "ф": "ɸφ",
    "ヘ": "へ",
    "二": "ニ",
    "八": "ハ",
    "力": "カ",
    "卜": "ト",
    "口": "ロ",
    "夕": "タ",
    "工": "エ",
    "AA": "Ꜳ",
    "aa": "ꜳ",
    "AE": "ÆӔ",
    "ae": "æӕ",
    "AO": "Ꜵ",
    "ao": "ꜵ",
    "AR": "\U0001f707",
    "AU": "Ꜷ",
    "au": "ꜷ",
    "AV": "ꜸꜺ",
    "av": "ꜹꜻ",
    "AY": "Ꜽ",
    "ay": "ꜽ",
    "bl": "Ыы",
    "dz": "ʣ",
    "ll": "ǁ\u05f0‖∥\U00010199",
    "llS": "\U00010198",
    "lO": "Ю",
    "lo": "ю",
    "ls": "ʪ",
    "lt": "₶",
    "lz": "ʫ",
    "MB": "\U0001f76b",
    "OE": "Œ",
    "oe": "œ",
    "OO": "ꚘꝎ",
    "oo": "∞ꚙꝏ",
    "QE": "\U0001f700",
    "rn": "м₥\U00011700\U000118e3",
    "sss": "\U0001f75c",
    "T3": "Ꜩ",
    "tf": "ꝷ",
    "ts": "ʦ",
    "ue": "ᵫ",
    "uo": "ꭣ",
    "VB": "\U0001f76c",
}
"""The characters that look like each letter, digit or sign and are not covered by the rules of `_appearance`."""

_GONE = (
    "'\"`\u00b4\u00b7\u0387\u00b8\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u02ca\u02cb\u055a\u05f3\u2032\u2035"
    "\u115f\u1160\u3164\uffa0"
)
"""Quotation marks, the dot of l·l, and invisible letters."""

_BETWEEN = "\t\n\r -_\u02d7\u06d4\u2043\u2212\u2500\u2501\u2796\u2800\u2cba\u30fc\u4e00\u3161\uff70"
"""Spaces, hyphens, and characters that look like them."""

_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "m": "rn", "w": "vv"})
"""Lower-case ASCII characters that look like others: 0 is o; 1, i, | are l; m is rn; w is vv."""

_LATIN = re.compile(
    r"\b(?:LATIN|REGIONAL INDICATOR SYMBOL) (?:(?:SMALL|CAPITAL|LETTER|DOTLESS|SCRIPT|INSULAR|BLACKLETTER|OPEN|LONG|"
    r"SIDEWAYS|STRETCHED|BARRED|HALF|MIDDLE-WELSH) )*([A-Z])(?: |$)"
)


def normalised(name: str) -> str:
    r"""The normal form of a name: NFKC, with single spaces between words and none around them.

    Example:
        >>> normalised("  Ｈealth \u00a0 2024 ")
        'Health 2024'
    """
    return " ".join(unicodedata.normalize("NFKC", name).split())


def confusable(one: str, other: str) -> bool:
    r"""Whether a reader could confuse two names.

    Example:
        >>> confusable("Health-2024", "heаlth_2O24"), confusable("health 2024", "health 2025")
        (True, False)
    """
    return not skeletons(one).isdisjoint(skeletons(other))


@lru_cache(maxsize=4096)
def skeletons(name: str) -> frozenset[str]:
    """The appearance of a name: as written, in lower case, and in upper case.

    Two names are confusable if they have one of these in common. There are three because the two cases of a letter
    may look like different letters: Greek Ν looks like N, and its lower case ν like v.

    Example:
        >>> sorted(skeletons("Νew")), sorted(skeletons("new"))
        (['nevv', 'vevv'], ['nevv'])
    """
    plain = normalised(name)
    if plain.isascii() and name.isascii():
        return frozenset([_skeleton(plain)])
    texts = {name, plain}  # NFKC changes the appearance of some characters
    return frozenset(_skeleton(form) for text in texts for form in (text, text.casefold(), text.upper()))


def _skeleton(text: str) -> str:
    looks = text if text.isascii() else "".join(map(_appearance, text))
    looks = looks.translate(_ascii()).casefold().translate(_ALIKE)
    return "-".join(part for part in looks.split("-") if part)


@lru_cache(maxsize=4096)
def _appearance(char: str) -> str:
    """The ASCII characters that one character looks like, or itself."""
    if char.isascii():
        return char
    looks = _looks().get(char)
    if looks is not None:
        return looks
    parts = unicodedata.normalize("NFKD", char)
    if parts != char:
        return "".join(map(_appearance, parts))
    match unicodedata.category(char):
        case "Mn" | "Me" | "Cf" | "Cc" | "Cs" | "Pi" | "Pf":
            return ""
        case "Zs" | "Zl" | "Zp" | "Pd" | "Pc":
            return "-"
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    name = unicodedata.name(char, "")
    if latin := _LATIN.search(name):
        return latin[1]
    base = name.partition(" WITH ")[0]
    if base != name:
        try:
            return _appearance(unicodedata.lookup(base))
        except KeyError:
            pass
    capital = char.upper()  # in Cherokee, Coptic and others, lower case looks like small capitals
    return _appearance(capital) if len(capital) == 1 and capital != char else char


@cache
def _looks() -> dict[str, str]:
    letters = {char: like for like, chars in _LOOKS.items() for char in chars}
    return letters | dict.fromkeys(_GONE, "") | dict.fromkeys(_BETWEEN, "-")


@cache
def _ascii() -> dict[int, str]:
    return str.maketrans({char: like for char, like in _looks().items() if char.isascii()})
