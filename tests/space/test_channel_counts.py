"""Counts by channels: those of the account, for every design that the space allows."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.space.account import account_of
from sphynx.space.channel_counts import ChannelCounts
from sphynx.space.design import Design
from tests.space.strategies import designs


@settings(max_examples=60, deadline=None)
@given(designs(), st.lists(st.integers(2, 5000), min_size=4, max_size=4))
def test_counts_are_those_of_the_account(design: Design, channels: list[int]) -> None:
    counts = ChannelCounts(design)
    for wanted in (design.channels, *channels):
        assert counts.of(wanted) == account_of(replace(design, channels=wanted)).total
