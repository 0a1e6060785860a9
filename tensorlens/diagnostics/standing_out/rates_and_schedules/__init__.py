"""Names learning rates and schedules that do not reach the steps, or reach zero."""

from __future__ import annotations

from tensorlens.diagnostics.shared.standing_out_text import Finder
from tensorlens.diagnostics.standing_out.rates_and_schedules import (
    empty_group,
    first_group_only,
    idle_schedules,
    late_group,
    learning_rates,
    loaded_rates,
    overwritten_rate,
    plateau_mode,
    range_test,
    rate_not_read,
    rate_set_back,
    schedule_length,
    unread_options,
    whole_shares,
)

FINDERS: tuple[Finder, ...] = (
    learning_rates.find,
    first_group_only.find,
    late_group.find,
    overwritten_rate.find,
    rate_set_back.find,
    loaded_rates.find,
    idle_schedules.find,
    schedule_length.find,
    plateau_mode.find,
    range_test.find,
    unread_options.find,
    rate_not_read.find,
    whole_shares.find,
    empty_group.find,
)
