"""`turngym plan`: what a published run takes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from rich.table import Table

from ...algos.training.presets import PRESETS, Preset, preset
from ...algos.training.presets.plan import GB, Hardware, ResourcePlan, min_gpus, plan
from .arguments import refuse_without
from .tables import plain_table, say, table_console


@dataclass(frozen=True, kw_only=True)
class Command:
    """Show what a published run takes: memory per device, tokens per step, time.

    Attributes:
        preset: The run; left out: all are listed.
        gpus: Devices; left out: those of the preset.
        memory: Memory of a device in GB (10**9 bytes).
        throughput: Sampled tokens per second of all devices together, for the expected time.
        tflops: Peak bfloat16 operations per second of a device in 10**12; an H100 has 989.
        utilisation: Share of them that the update reaches.
        lora_rank: Plan for adapters of this rank in place of the weights.
        max_batch: Actions that a device samples at a time; left out: those of the preset.
        micro_batch_tokens: Tokens of one forward pass of training; left out: those of the preset.
        offload: Plan for moments and reference in main memory while the engine plays.
        offload_activations: Plan for layers' inputs in main memory until they are wanted.
    """

    preset: str | None = None
    gpus: int | None = None
    memory: float = 80.0
    throughput: float | None = None
    tflops: float = 989.0
    utilisation: float = 0.4
    lora_rank: int = 0
    max_batch: int | None = None
    micro_batch_tokens: int | None = None
    offload: bool = False
    offload_activations: bool = False


def run(command: Command) -> None:
    """Print the plan of a preset, or the list of presets.

    Raises:
        BadValueError: Options that do nothing without a preset, or no such hardware.
    """
    if command.preset is None:
        refuse_without(command, "--preset", {field.name for field in fields(command)})
        list_presets()
        return
    changes = {"max_batch": command.max_batch, "micro_batch_tokens": command.micro_batch_tokens}
    chosen = replace(preset(command.preset), **{k: v for k, v in changes.items() if v is not None})
    hardware = Hardware(
        gpus=chosen.gpus if command.gpus is None else command.gpus,
        memory_gb=command.memory,
        throughput=command.throughput,
        tflops=command.tflops,
        utilisation=command.utilisation,
    )
    moved = {"offload": command.offload, "offload_activations": command.offload_activations}
    made = plan(chosen, hardware, command.lora_rank, **moved)
    console = table_console()
    say(f"[bold]{chosen.name}[/]: {chosen.paper}", markup=True)
    say(
        f"{chosen.recipe}, {chosen.model} ({made.parameters:,} parameters) on {chosen.env}, "
        f"{hardware.gpus} x {hardware.memory_gb:g} GB"
    )
    console.print()
    console.print(memory_table(made))
    least = min_gpus(chosen, hardware, command.lora_rank, **moved)
    say(verdict(made, least), markup=True)
    console.print()
    console.print(step_table(made))
    if chosen.published:
        console.print()
        console.print(published_table(chosen))
    for note in chosen.notes:
        say(f"[dim]- {note}[/]", markup=True)


def list_presets() -> None:
    """Print the presets."""
    console = table_console()
    table = plain_table("preset", "paper", "recipe", "model", "env", "steps")
    for p in PRESETS.values():
        table.add_row(f"[bold]{p.name}[/]", p.paper, p.recipe, p.model, p.env, str(p.steps))
    console.print(table)
    console.print()
    console.print("`turngym plan --preset NAME` shows what one takes, `turngym train` runs it.")


def memory_table(made: ResourcePlan) -> Table:
    """Return the table of memory per device."""
    table = plain_table("memory per GPU", right=["GB"])
    for name, count in made.memory.items():
        table.add_row(name, f"{count / GB:.2f}")
    if made.offload:
        table.add_row("[bold]while the engine plays[/]", f"[bold]{made.playing / GB:.2f}[/]")
        table.add_row("[bold]while the learner updates[/]", f"[bold]{made.updating / GB:.2f}[/]")
    else:
        table.add_row("[bold]together[/]", f"[bold]{made.total / GB:.2f}[/]")
    if made.main_memory:
        table.add_row("main memory for each GPU", f"{made.main_memory / GB:.2f}")
    return table


def verdict(made: ResourcePlan, least: int | None) -> str:
    """Say whether it fits, and what to do where it does not.

    Args:
        made: The plan.
        least: Number of devices that suffices; None if none does.
    """
    free = (made.capacity - made.total) / GB
    if made.fits:
        return (
            f"fits, {free:.1f} GB to spare; the cache holds one full batch here, and the engine "
            "takes what is left for up to two"
        )
    more = f"--gpus {least} suffices; or " if least else ""
    options = {"activations": "--micro-batch-tokens", "engine's cache": "--max-batch"}
    largest = max(options, key=lambda name: made.memory.get(name, 0))
    lower = f"{more}lower {options[largest]} ({largest})"
    return f"[red]does not fit, {-free:.1f} GB too much[/]: {lower}"


def step_table(made: ResourcePlan) -> Table:
    """Return the table of a step's tokens and time."""
    table = plain_table("a step, at most", right=[""])
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
    """Return the table of the paper's figures."""
    table = plain_table("published", "", "against")
    for row in chosen.published:
        table.add_row(row.measure, row.value, row.rival)
    return table
