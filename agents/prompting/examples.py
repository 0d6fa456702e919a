"""Worked examples for the prompts; people and places in them are invented."""

from __future__ import annotations

FORM = "Give the shortest answer that is complete: a name, a date, a number, yes or no."
ANSWER_FORM = f"{FORM} Write it as <answer> your answer </answer>."

COT = """\
Question: Who composed the anthem of the town where the painter Orla Vint was born?
Reasoning: Orla Vint was born in Marrowick. The anthem of Marrowick was composed by Teo Hald. So \
the answer is: Teo Hald.
<answer> Teo Hald </answer>

Question: Which lighthouse is older, Skerry Point or Dun Head?
Reasoning: Skerry Point Lighthouse was lit in 1841. Dun Head Lighthouse was lit in 1867. 1841 is \
earlier than 1867. So the answer is: Skerry Point.
<answer> Skerry Point </answer>"""

IRCOT = """\
Question: Who composed the anthem of the town where the painter Orla Vint was born?
Sentence 1: The painter Orla Vint was born in Marrowick.
Sentence 2: The anthem of Marrowick was composed by Teo Hald.
Sentence 3: So the answer is: Teo Hald.

Question: Which lighthouse is older, Skerry Point or Dun Head?
Sentence 1: Skerry Point Lighthouse was first lit in 1841.
Sentence 2: Dun Head Lighthouse was first lit in 1867, later than Skerry Point.
Sentence 3: So the answer is: Skerry Point."""

REACT = """\
Question: Who composed the anthem of the town where the painter Orla Vint was born?
Thought: I need the birthplace of Orla Vint first, then the composer of its anthem.
Action: Search[Orla Vint painter birthplace]
Observation: Doc 1(Title: Orla Vint) Orla Vint was a painter from the harbour town of Marrowick.
Thought: She was born in Marrowick. Now I need the anthem of Marrowick.
Action: Search[anthem of Marrowick composer]
Observation: Doc 1(Title: Marrowick) The town's anthem, "Grey Water", was composed by Teo Hald.
Thought: The anthem was composed by Teo Hald, which answers the question.
Action: Finish[Teo Hald]

Question: Which lighthouse is older, Skerry Point or Dun Head?
Thought: I need the year of each lighthouse.
Action: Search[Skerry Point Lighthouse first lit]
Observation: Doc 1(Title: Skerry Point Lighthouse) It was lit for the first time in 1841.
Thought: 1841 for Skerry Point. Now Dun Head.
Action: Search[Dun Head Lighthouse first lit]
Observation: Doc 1(Title: Dun Head Lighthouse) Dun Head has been in service since 1867.
Thought: 1841 is before 1867, so Skerry Point is older.
Action: Finish[Skerry Point]"""

SEARCH_O1 = """\
Question: Who composed the anthem of the town where the painter Orla Vint was born?
The town comes first: where was Orla Vint born?
<|begin_search_query|>Orla Vint painter birthplace<|end_search_query|>
<|begin_search_result|>Orla Vint came from the harbour town of Marrowick.<|end_search_result|>
So the town is Marrowick. Who composed its anthem?
<|begin_search_query|>Marrowick town anthem composer<|end_search_query|>
<|begin_search_result|>Marrowick's anthem was composed by Teo Hald.<|end_search_result|>
That settles it: \\boxed{Teo Hald}"""
