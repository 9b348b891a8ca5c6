"""Numbers for people: thousands separators and SI units."""

from typing import Any

_PREFIXES = ((1e-12, "p"), (1e-9, "n"), (1e-6, "u"), (1e-3, "m"), (1.0, ""))
_WIDEST_COUNT = 1e12


def count_text(value: Any) -> str:
    """`12,345`; four digits where conventions without rounding leave a fraction or the number would be too wide."""
    number = float(value)
    if abs(number) >= _WIDEST_COUNT:
        return f"{number:.3e}"
    if number.is_integer():
        return f"{int(number):,}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def percent(share: Any) -> str:
    """`12.3` for 0.123."""
    return f"{100 * float(share):.1f}"


def energy_unit(energy_pj: Any) -> tuple[float, str]:
    """The unit in which an energy reads best: how many pJ it has, and its name."""
    joules = abs(float(energy_pj)) * 1e-12
    scale, prefix = _PREFIXES[0]
    for larger in _PREFIXES:
        if joules >= larger[0]:
            scale, prefix = larger
    return scale * 1e12, prefix + "J"


def energy_text(energy_pj: Any) -> str:
    """`4.402 mJ`."""
    scale, unit = energy_unit(energy_pj)
    return f"{float(energy_pj) / scale:,.3f} {unit}"


def area_text(area_um2: Any) -> str:
    """In mm^2 where that is a readable number, else in um^2."""
    area = float(area_um2)
    return f"{area / 1e6:,.3f} mm^2" if area >= 1e4 else f"{area:,.1f} um^2"
