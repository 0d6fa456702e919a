"""Pictures and books of the house; the books quote the openings of works in the public domain."""

from __future__ import annotations

from ..objects.records import Text

PICTURES = ("picture", "drawing", "painting", "finger painting")
SUBJECTS = (
    *("a cow", "a chicken", "a farm", "a lush green meadow", "rolling hills"),
    *("a wintery mountain", "a boat crossing a river", "the moon", "abstract shapes"),
    "two people playing",
)
ARTISTS = ("Alexandra", "Owen", "Bob", "Lily")

_WHALE = (
    "Call me Ishmael. Some years ago—never mind how long precisely—having little or no money in "
    "my purse, and nothing particular to interest me on shore, I thought I would sail about a "
    "little and see the watery part of the world. It is a way I have of driving off the spleen "
    "and regulating the circulation. Whenever I find myself growing grim about the mouth; "
    "whenever it is a damp, drizzly November in my soul; whenever I find myself involuntarily "
    "pausing before coffin warehouses, and bringing up the rear of every funeral I meet; and "
    "especially whenever my hypos get such an upper hand of me, that it requires a strong moral "
    "principle to prevent me from deliberately stepping into the street, and methodically "
    "knocking people’s hats off—then, I account it high time to get to sea as soon as I can. "
)
_NORTH = (
    "You will rejoice to hear that no disaster has accompanied the "
    "commencement of an enterprise which you have regarded with such evil forebodings. I arrived "
    "here yesterday, and my first task is to assure my dear sister of my welfare and increasing "
    "confidence in the success of my undertaking.\n\nI am already far north of London, and as I "
    "walk in the streets of Petersburgh, I feel a cold northern breeze play upon my cheeks, which "
    "braces my nerves and fills me with delight. Do you understand this feeling? This breeze, "
    "which has travelled from the regions towards which I am advancing, gives me a foretaste of "
    "those icy climes. "
)
_DETECTIVE = (
    "To Sherlock Holmes she is always the woman. I have seldom heard him mention her under any "
    "other name. In his eyes she eclipses and predominates the whole of her sex. It was not that "
    "he felt any emotion akin to love for Irene Adler. All emotions, and that one particularly, "
    "were abhorrent to his cold, precise but admirably balanced mind. He was, I take it, the most "
    "perfect reasoning and observing machine that the world has seen, but as a lover he would "
    "have placed himself in a false position. "
)
# The original prints these two line breaks as written, backslash and letter.
_MARRIAGE = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife.\\n\\nHowever little known the feelings or views of such a man may "
    "be on his first entering a neighbourhood, this truth is so well fixed in the minds of the "
    "surrounding families, that he is considered as the rightful property of some one or other of "
    "their daughters.\\n\\n“My dear Mr. Bennet,” said his lady to him one day, “have you heard "
    "that Netherfield Park is let at last?” "
)
_SPEARS = (
    "Lo! the Spear-Danes’ glory through splendid achievements\n"
    "The folk-kings’ former fame we have heard of,\n"
    "How princes displayed then their prowess-in-battle.\n"
    "Oft Scyld the Scefing from scathers in numbers\n"
    "From many a people their mead-benches tore. "
)
_VARIATION = (
    "I. On Variation under Domestication, and on the Principles of Selection.\n"
    "An individual organism placed under new conditions sometimes varies in a small degree and in "
    "very trifling respects such as stature, fatness, sometimes colour, health, habits in animals "
    "and probably disposition. Also habits of life develop certain parts. Disuse atrophies.\n"
    "When the individual is multiplied for long periods by buds the variation is yet small, "
    "though greater and occasionally a single bud or individual departs widely from its type and "
    "continues steadily to propagate, by buds, such new kind. "
)
BOOKS = (
    Text("Moby Dick", _WHALE + _WHALE, "Herman Melville"),
    Text("Frankenstein", _NORTH, "Mary Wollstonecraft Shelley"),
    Text("Sherlock Holmes", _DETECTIVE, "Arthur Conan Doyle"),
    Text("Pride and Prejudice", _MARRIAGE, "Jane Austen"),
    Text("Beowulf", _SPEARS, "Beowulf poet"),
    Text("The Foundations of the Origin of Species", _VARIATION, "Charles Darwin"),
)
"""The books in the order of the numbers that draw them."""
