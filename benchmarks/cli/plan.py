"""`turngym plan` and `turngym merge`."""

from __future__ import annotations

import dataclasses

from rich.table import Table

from ...agents.models.export import export_merged
from ...algos.training.presets import PRESETS, Preset, preset
from ...algos.training.presets.plan import GB, Hardware, ResourcePlan, min_gpus, plan
from .models import model_path
from .tables import table_console
from .tuning_options import MergeCommand, PlanCommand


def run(command: PlanCommand) -> None:
    """Print the plan of a preset, or the list of presets."""
    if command.preset is None:
        list_presets()
        return
    chosen = _changed(preset(command.preset), command)
    hardware = Hardware(
        gpus=command.gpus or chosen.gpus,
        memory_gb=command.memory,
        throughput=command.throughput,
        tflops=command.tflops,
        utilisation=command.utilisation,
    )
    made = plan(chosen, hardware, command.lora_rank)
    console = table_console()
    console.print(f"[bold]{chosen.name}[/]: {chosen.paper}", highlight=False)
    console.print(
        f"{chosen.recipe}, {chosen.model} ({made.parameters:,} parameters) on {chosen.env}, "
        f"{hardware.gpus} x {hardware.memory_gb:g} GB",
        highlight=False,
    )
    console.print()
    console.print(memory_table(made))
    console.print(verdict(chosen, hardware, made, command.lora_rank), highlight=False)
    console.print()
    console.print(step_table(made))
    if chosen.published:
        console.print()
        console.print(published_table(chosen))
    for note in chosen.notes:
        console.print(f"[dim]- {note}[/]", highlight=False)


def merge(command: MergeCommand) -> None:
    """Write the merged model."""
    out = export_merged(model_path(command.model, also=()), command.out)
    table_console().print(f"merged model in {out}", highlight=False, soft_wrap=True)


def list_presets() -> None:
    """Print the presets."""
    console = table_console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("preset", "paper", "recipe", "model", "env", "steps"):
        table.add_column(head, no_wrap=True)
    for p in PRESETS.values():
        table.add_row(f"[bold]{p.name}[/]", p.paper, p.recipe, p.model, p.env, str(p.steps))
    console.print(table)
    console.print()
    console.print("`turngym plan --preset NAME` says what one takes, `turngym train` runs it.")


def memory_table(made: ResourcePlan) -> Table:
    """Memory per device."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("memory per GPU", no_wrap=True)
    table.add_column("GB", justify="right")
    for name, count in made.memory.items():
        table.add_row(name, f"{count / GB:.2f}")
    table.add_row("[bold]together[/]", f"[bold]{made.total / GB:.2f}[/]")
    return table


def verdict(chosen: Preset, hardware: Hardware, made: ResourcePlan, lora_rank: int) -> str:
    """Whether it fits, and what to do where it does not."""
    free = (made.capacity - made.total) / GB
    if made.fits:
        return f"fits, {free:.1f} GB to spare"
    least = min_gpus(chosen, hardware, lora_rank)
    more = f"--gpus {least} suffices; or " if least else ""
    largest = max(
        (name for name in ("activations", "engine's cache")), key=lambda n: made.memory.get(n, 0)
    )
    knob = {"activations": "--micro-batch-tokens", "engine's cache": "--max-batch"}[largest]
    return f"[red]does not fit, {-free:.1f} GB too much[/]: {more}lower {knob} ({largest})"


def step_table(made: ResourcePlan) -> Table:
    """Tokens and time of a step."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("a step, at most", no_wrap=True)
    table.add_column("", justify="right")
    table.add_row("tokens sampled", f"{made.sampled:,}")
    table.add_row("tokens trained on, observations included", f"{made.trained:,}")
    if made.sample_seconds is None:
        table.add_row("sampling", "give --throughput TOKENS_PER_S")
    else:
        table.add_row("sampling", f"{made.sample_seconds:,.0f} s")
    table.add_row("update", f"{made.update_seconds:,.0f} s")
    if made.hours is not None:
        table.add_row(f"[bold]{made.steps:,} steps[/]", f"[bold]{made.hours:,.1f} h[/]")
    return table


def published_table(chosen: Preset) -> Table:
    """The paper's figures."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("published", "", "against"):
        table.add_column(head)
    for row in chosen.published:
        table.add_row(row.measure, row.value, row.rival)
    return table


def _changed(chosen: Preset, command: PlanCommand) -> Preset:
    asked = {"max_batch": command.max_batch, "micro_batch_tokens": command.micro_batch_tokens}
    return dataclasses.replace(chosen, **{k: v for k, v in asked.items() if v is not None})
