"""Words by which an agent's sentences are told apart."""

from __future__ import annotations

import re


class Cues:
    """Patterns of which any may occur.

    They are kept apart by how they begin: an alternation whose branches all begin at a word's edge
    is searched many times faster than a mixed one.

    Args:
        patterns: Regular expressions for text in lower case.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        edge = [p for p in patterns if p.startswith(r"\b")]
        start = [p for p in patterns if p.startswith("^")]
        other = [p for p in patterns if p not in edge and p not in start]
        self._searches = [re.compile(_join_patterns(some)).search for some in (edge, other) if some]
        if start:
            self._searches.append(re.compile(_join_patterns(start)).match)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match of one of the kinds; None where nothing occurs."""
        for search in self._searches:
            if (found := search(text)) is not None:
                return found
        return None


def _join_patterns(patterns: list[str]) -> str:
    return "|".join(f"(?:{p})" for p in patterns)


def _make_cues(*patterns: str) -> Cues:
    return Cues(patterns)


MARKS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}")
SENTENCE = re.compile(r"(?<=[.!?])[\"')]*\s+|(?<!\s)\s*\n+\s*(?:[-•]\s+|\d\.\s+)?")
"""Ends of sentences; a run of blanks is tried from its start alone, or the time is quadratic."""
NUMBER_COMMA = re.compile(r"(?<=\d),(?=\d{3}\b)")

EMAIL = _make_cues(r"e-?mail")
NAME = _make_cues(
    r"\bzip\b",
    r"\bpostal code",
    r"\bpostcode",
    r"\bfull name",
    r"\byour (?:first|last)? ?name",
    r"\bsurname",
)
WHO = _make_cues(
    r"\bidentif",
    r"\bauthenticat",
    r"\bverify (?:your|who|that you)",
    r"\bwho (?:you are|am i)",
    r"\blook you up",
    r"\bfind (?:you in|your (?:account|profile|record))",
    r"\blocate your (?:account|profile)",
    r"\baccount (?:details|information)",
)
ORDER = _make_cues(
    r"\border (?:id|number|no\b)",
    r"\bwhich (?:of your |one of your )?(?:\w+ )?(?:order|purchase)",
    r"\bwhat order",
    r"\b(?:id|number) of (?:the|your|that) (?:order|purchase)",
    r"\border reference",
)
ITEMS = _make_cues(
    r"\b(?:which|what) (?:of the |of your |specific |exact |other |particular "
    r")?(?:item|product|article|thing|line)",
    r"\bitems? (?:you(?:'d| would)? (?:like|want|wish)|(?:to be|should be|do you))",
    r"\bitem id",
    r"\bwhat (?:exactly )?(?:would you like|do you want|are you looking) to "
    r"(?:return|exchange|swap|change|send back|modify)",
    r"\bevery item",
    r"\ball (?:the |of the )?items (?:that )?you",
    r"\blist (?:the|all|of) ",
)
OPTIONS = _make_cues(
    r"\b(?:which|what) (?:new |other |exact |particular |kind of |type of "
    r")?(?:option|variant|version|colou?r|size|model|"
    r"configuration|specification|feature|characteristics|material|style|specs)",
    r"\bwhat (?:would|should) (?:it|they|the new|you like (?:it|them|instead))",
    r"\b(?:replacement|new (?:item|one|variant|version)s?)\b.*\b(?:like|want|prefer|"
    r"look|be|have)\b",
    r"\bexchange (?:it|them|this|that|those|these) (?:for|to|with)\b",
    r"\bpreferences?\b",
    r"\boptions? (?:you|would|do)",
    r"\bwhat (?:are you|would you like|do you want|should it).*\b(?:instead|for|in return)",
)
REASON = _make_cues(
    r"\breason\b",
    r"\bwhy\b",
    r"\bno longer need(?:ed|s|)?[\"']? or\b",
    r"\bby mistake[\"']? or\b",
    r"\bwhat(?:'s| is) (?:the cause|behind)",
    r"\bwhat (?:made|makes|prompted) you",
)
PAYMENT = _make_cues(
    r"\bpayment method",
    r"\bmethod of payment",
    r"\b(?:which|what) (?:payment|card|account|method)",
    r"\bhow (?:would|do|should|shall) .*\b(?:pay|refund|settle|cover)",
    r"\bpay (?:for|by|with)\b",
    r"\bwhere .*\brefund",
    r"\brefund(?:ed)? (?:to|sent|go|be)\b",
    r"\bcharge(?:d)? to\b",
    r"\bsettle\b",
    r"\bform of payment",
    r"\bmoney (?:to )?(?:go|be|sent)",
    r"\bwhich .*\bmethods?\b",
)
ADDRESS = _make_cues(
    r"\b(?:new|full|complete|correct|updated|shipping|delivery|which|what|the|your) "
    r"(?:\w+ )?address",
    r"\bstreet\b",
    r"\baddress (?:line|should|would|you|be)",
    r"\bwhere (?:should|would|do|shall).*(?:ship|sen[dt]|deliver)",
    r"\bship (?:it|the order|this) to\b",
    r"\bmoving to\b",
)
MORE = _make_cues(
    r"\banything else",
    r"\bsomething else",
    r"\bany(?:thing)? (?:other|further|more)\b",
    r"\bwhat else\b",
    r"\bfurther (?:help|assist)",
    r"\bhelp you with today",
    r"\bcan i help",
    r"\bhow (?:can|may) i (?:help|assist)",
    r"\bassist you (?:with|today)",
    r"\belse i can",
)
ASKING = _make_cues(
    r"\?$",
    r"^(?:please|kindly)\b",
    r"\b(?:could|can|would|will|may) you (?:please |kindly )?"
    r"(?:provide|tell|share|give|let|specify|confirm|state|send|name|describe|clarify|list|supply)",
    r"\b(?:please|kindly) (?:provide|tell|share|give|let|specify|confirm|state|send|"
    r"name|describe|clarify|"
    r"list|supply|enter|type|reply|respond|indicate|choose|select)",
    r"\bi(?:'ll| will|'d| would)? (?:first |just |also |still |will |would )*(?:need|"
    r"require|have to know|like to know)\b",
    r"\blet me know\b",
    r"\bmay i (?:have|ask|know|get)\b",
    r"\bcan i (?:have|get)\b",
    r"\btell me\b",
)
CONFIRM = _make_cues(
    r"\bconfirm",
    r"\bproceed",
    r"\bgo ahead",
    r"\b(?:is|does|are) (?:that|this|everything|it|these|the above|all of (?:this|"
    r"that)|all this|those)"
    r"(?: all)? (?:correct|right|ok|okay|fine|good|accurate|look|sound|what you|"
    r"alright|acceptable|work)",
    r"\bshall i\b",
    r"\bshould i\b",
    r"\bwould you like me to\b",
    r"\bdo you want me to\b",
    r"\bmay i (?:go|do|process|cancel|place|make|submit)",
    r"\b(?:yes|y)/(?:no|n)\b",
    r"\bsay (?:\")?yes\b",
    r"[\"'(]yes\b",
    r"\byes or no\b",
    r"\bcorrect\?$",
    r"\bdo you (?:agree|approve|accept|consent)",
    r"\bare you (?:happy|ok|okay|fine|sure|certain|good)",
    r"\bok(?:ay)? (?:to|with|for|if)\b",
    r"\bready for me to\b",
    r"\bif (?:you agree|that works|this works|that is right|this is right|you're "
    r"happy|all is well|that suits)",
    r"\bwant(?:s)? this done\b",
    r"\bright\?$",
    r"\bok(?:ay)?\?$",
    r"\bam i (?:right|correct|good)",
    r"\bcan i (?:go|do|process|submit|place|make)",
    r"\byour (?:approval|consent|go-ahead|okay|agreement|permission)",
    r"\bdo i have your\b",
    r"\bgive me the (?:nod|green light)",
    r"\bwill that do\b",
    r"\bsound(?:s)? (?:good|right|ok|fine)",
    r"\bapprove\b",
    r"\bagree\?",
)
VERBS = {
    "cancel": _make_cues(r"\bcancel", r"\bcall(?:ing)? off\b", r"\bvoid\b"),
    "return": _make_cues(
        r"\breturn",
        r"\bsend(?:ing)? back\b",
        r"\btak(?:e|ing) back\b",
        r"\brefund (?:of|for)\b",
        r"\bback for a refund",
    ),
    "exchange": _make_cues(r"\bexchang", r"\bswap", r"\breplac", r"\btrad(?:e|ing)\b"),
    "modify": _make_cues(
        r"\bmodif", r"\bchang", r"\bupdat", r"\bswitch", r"\bswap", r"\breplac", r"\bexchang"
    ),
    "payment": _make_cues(
        r"\bpayment", r"\bpay\b", r"\bpaid\b", r"\bcharg", r"\bbill\b", r"\bmethod\b"
    ),
    "ship_to": _make_cues(
        r"\baddress", r"\bship", r"\bdeliver(?! ?ed)", r"\bsend\b", r"\bredirect", r"\bgoes? to\b"
    ),
    "move": _make_cues(r"\baddress", r"\bprofile", r"\baccount"),
}
DONE = _make_cues(
    r"\b(?:has|have|is|are|was|were) (?:now |all |been |just |successfully |already |both |also )*"
    r"(?:cancel|return|exchang|modif|update|chang|process|complete|submit|plac|request|"
    r"done|set\b|taken care|"
    r"switch|swap|finish|settled|registered|recorded|arranged|sorted)",
    r"\bsuccessful",
    r"\bi(?:'ve| have) (?:now |just |successfully |gone ahead and |also |already "
    r")*(?:cancel|return|exchang|modif|update|"
    r"chang|process|complete|submit|plac|request|switch|swap|arrange|finish|sorted|"
    r"taken care|set|filed|put|made)",
    r"\ball set\b",
    r"^(?:all )?done\b",
    r"\bit(?:'s| is) done\b",
    r"\bwent through\b",
    r"\bis (?:now )?complete\b",
    r"\btaken care of\b",
    r"\bgone through\b",
    r"\byou will receive an e-?mail",
    r"\bconsider it done\b",
    r"\ball sorted\b",
)
DENY = _make_cues(
    r"\bcan ?not\b",
    r"\bcan(?:'|’)t\b",
    r"\bunable to\b",
    r"\bnot able to\b",
    r"\bnot possible\b",
    r"\bimpossible\b",
    r"\bnot (?:allowed|permitted|eligible|supported|accept|something (?:i|we)|in a "
    r"position|an option|within)",
    r"\bwon(?:'|’)t be able\b",
    r"\bisn(?:'|’)t (?:possible|allowed|eligible|something|an option|permitted)",
    r"\baren(?:'|’)t (?:able|allowed)",
    r"\bdecline\b",
    r"\bagainst (?:our|the|store|company) (?:policy|rules)",
    r"\bhave to (?:refuse|decline|deny|turn)",
    r"\bmust (?:refuse|decline|deny)",
    r"\bonly (?:pending|delivered) orders\b",
    r"\bdo(?:es)?(?:n(?:'|’)t| not) (?:allow|permit|support|qualify|offer)",
    r"\bno way (?:for me )?to\b",
    r"\bnot going to be possible",
    r"\bout of my hands",
    r"\bcould ?n(?:'|’)t (?:do|be done)",
    r"\btoo late to\b",
    r"\brules (?:forbid|don)",
    r"\bpolicy (?:forbids|prevents|prohibits)",
    r"\bruled out\b",
    r"\bno longer (?:be|possible|eligible)",
    r"\bi(?:'m| am) not allowed",
    r"\brefuse\b",
)
UNAVAILABLE = _make_cues(
    r"\b(?:not|isn(?:'|’)t|aren(?:'|’)t|no longer|currently not|un) ?(?:currently |"
    r"presently )?available",
    r"\bunavailable\b",
    r"\bout of stock\b",
    r"\bsold out\b",
    r"\b(?:do|does)(?:n(?:'|’)t| not) (?:have|carry|exist|stock)",
    r"\bno (?:such|matching|available) (?:\w+ )?(?:variant|item|option|version|product)",
    r"\bnot in stock\b",
    r"\bnone (?:available|in stock|left)",
    r"\b(?:ran|run) out of\b",
    r"\bno stock\b",
)
TRANSFER = _make_cues(
    r"\btransfer(?:red|ring)? (?:you|to)\b",
    r"\bbeing transferred\b",
    r"\btransfer (?:this|your|the)\b.*\b(?:to|agent)",
    r"\bhuman (?:agent|representative|colleague|operator)",
    r"\bconnect(?:ing)? you (?:with|to)\b",
    r"\bhand(?:ing)? you over\b",
    r"\bescalat",
    r"\bpass(?:ing)? you (?:on|over) to\b",
    r"\bput(?:ting)? you through\b",
)
OFFER = _make_cues(
    r"\binstead\b",
    r"\balternativ",
    r"\bhow about\b",
    r"\bwould you prefer\b",
    r"\bwould you rather\b",
    r"\bclosest\b",
    r"\bother options?\b",
    r"\bwhat about\b",
    r"\bwe (?:do )?have\b.*\bavailable\b",
)
SMALL = _make_cues(
    r"^(?:hello|hi|hey|welcome|good (?:morning|day|afternoon|evening)|greetings)\b",
    r"\bthank",
    r"\bsorry\b",
    r"\bapolog",
    r"\bone moment\b",
    r"\bplease (?:hold|wait)\b",
    r"\blet me (?:check|look|see|find|pull)",
    r"\bi understand\b",
    r"\bof course\b",
    r"\bhappy to help\b",
    r"\bgreat (?:day|choice)\b",
    r"\bhave a\b",
    r"\byou(?:'re| are) welcome\b",
    r"\bglad\b",
    r"^(?:sure|certainly|absolutely|okay|ok|perfect|great)\b",
    r"\bappreciate\b",
    r"\bbear with me\b",
    r"\bjust a (?:moment|second)",
)
REASONS = {
    "no longer needed": _make_cues(
        r"\bno longer need", r"\bnot needed\b", r"\bdon(?:'|’)t need", r"\bdo not need"
    ),
    "ordered by mistake": _make_cues(r"\bby mistake\b", r"\bmistake", r"\baccident"),
}
REMINDER = _make_cues(
    r"\bmake sure\b", r"\bkeep in mind\b", r"\bplease note\b", r"\bremember that\b"
)
INJECTION = re.compile(r"###\s*(?:stop|transfer|out-of-scope)\s*###")
ORDER_ID = re.compile(r"#w\d{3,7}\b")
ITEM_ID = re.compile(r"(?<![\w#.$-])(?:\d{10}|\d{4})(?![\w-]|\.\d)")
METHOD_ID = re.compile(r"\b(?:credit_card|paypal|gift_card)_\d{2,7}\b")
NUMBERS = re.compile(r"(?<![\w#.-])-?\$?(\d+(?:\.\d+)?)(?![\w-])")
EXCEPT = _make_cues(
    r"\bkeep",
    r"\bexcept\b",
    r"\bnot (?:include|including)",
    r"\bremain",
    r"\bunchanged\b",
    r"\bother than\b",
    r"\bleav(?:e|ing)\b",
)
CLAUSE = re.compile(r"[;!?\n]|[.,](?!\d)")
"""Ends of clauses; points and commas within numbers are none."""
PAYS = _make_cues(
    r"\bpay(?:s|ing)?\b(?! (?:you|it back|back)\b)", r"\bcharg", r"\bsurcharge", r"\bowe\b"
)
GETS_BACK = _make_cues(
    r"\b(?:get|gets|getting|give|giving|pay|paying)\b.{0,40}\bback\b",
    r"\bback \$?\d",
    r"\brefund",
    r"\breimburs",
    r"\bcredited\b",
    r"\breceive\b",
    r"\d back\b",
)
