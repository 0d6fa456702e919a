"""Small chat templates of the kinds that real models have, written for these tests.

Each keeps what matters of its kind: where tools stand, how calls and observations are written,
what happens to thoughts, what is trimmed.
"""

from __future__ import annotations

_TOOLS = (
    "{% if tools %}<|im_start|>system\n# Tools\n<tools>{% for tool in tools %}\n{{ tool | tojson }}"
    "{% endfor %}\n</tools>\nAnswer with <tool_call>...</tool_call>.<|im_end|>\n{% endif %}"
)
_CALLS = (
    "{% for call in m.tool_calls or [] %}"
    "{% if not loop.first or body %}{{ '\n' }}{% endif %}"
    '{{ \'<tool_call>\n{"name": "\' + call.function.name + \'", "arguments": \' }}'
    "{{ call.function.arguments | tojson }}{{ '}\n</tool_call>' }}{% endfor %}"
)
_RESPONSE = (
    "{{ '<|im_start|>user\n<tool_response>\n' + m.content + '\n</tool_response><|im_end|>\n' }}"
)

# Qwen2.5's kind: Hermes calls, everything is shown as it was
HERMES = (
    _TOOLS
    + "{% for m in messages %}{% if m.role == 'tool' %}"
    + _RESPONSE
    + "{% elif m.role == 'assistant' %}{% set body = m.content %}"
    "{{ '<|im_start|>assistant\n' + body }}" + _CALLS + "{{ '<|im_end|>\n' }}"
    "{% else %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Qwen3's kind: thoughts before the last message of a user are dropped, those since then are kept
QWEN3 = (
    _TOOLS + "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m.role == 'tool' %}"
    + _RESPONSE
    + "{% elif m.role == 'assistant' %}"
    "{% set body = m.content.split('</think>')[-1].lstrip('\n') %}"
    "{{ '<|im_start|>assistant\n' }}"
    "{% if '</think>' in m.content and loop.index0 > ns.last %}"
    "{% set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
    "{{ '<think>\n' + thought + '\n</think>\n\n' }}{% endif %}{{ body }}"
    + _CALLS
    + "{{ '<|im_end|>\n' }}"
    "{% else %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# the same, and the prompt opens the thought (the models that always think)
QWEN3_THINKING = QWEN3.replace(
    "{{ '<|im_start|>assistant\n' }}{% endif %}",
    "{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}",
)

# a template that drops every old thought, whoever spoke since
FORGETFUL = QWEN3.replace("loop.index0 > ns.last", "loop.last")

# Llama-3.2's kind: a call is a whole message of JSON, tools' answers are JSON of their own
LLAMA32 = (
    "{{ '<|begin_of_text|>' }}{% for m in messages %}"
    "{% if m.role == 'tool' %}"
    "{{ '<|start_header_id|>ipython<|end_header_id|>\n\n' + (m.content | tojson) + '<|eot_id|>' }}"
    "{% elif m.tool_calls %}{% set call = m.tool_calls[0].function %}"
    '{{ \'<|start_header_id|>assistant<|end_header_id|>\n\n{"name": "\' + call.name }}'
    "{{ '\", \"parameters\": ' + (call.arguments | tojson) + '}<|eot_id|>' }}"
    "{% else %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' }}"
    "{% if loop.first and tools %}{{ 'Functions:\n' }}{% for tool in tools %}"
    "{{ (tool | tojson) + '\n\n' }}{% endfor %}{% endif %}"
    "{{ m.content | trim + '<|eot_id|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)

# Gemma-3's kind: no system role, no tools, roles must alternate
GEMMA3 = (
    "{{ '<bos>' }}{% for m in messages %}"
    "{% if m.role not in ('user', 'assistant') or (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate user/assistant') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' }}"
    "{{ m.content | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)

CHATML_SIGNS = ["<|im_start|>", "<|im_end|>"]
SIGNS = {
    HERMES: [*CHATML_SIGNS, "<tool_call>", "</tool_call>"],
    QWEN3: [*CHATML_SIGNS, "<tool_call>", "</tool_call>", "<think>", "</think>"],
    LLAMA32: ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    GEMMA3: ["<bos>", "<start_of_turn>", "<end_of_turn>"],
}
SIGNS |= {QWEN3_THINKING: SIGNS[QWEN3], FORGETFUL: SIGNS[QWEN3]}
"""Special tokens of each template."""

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a thing.",
        "parameters": {
            "type": "object",
            "properties": {"thing": {"type": "string"}},
            "required": ["thing"],
        },
    },
}
