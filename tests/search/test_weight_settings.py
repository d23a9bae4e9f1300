"""The optimiser that both searches train weights by."""

import torch
from torch import nn

from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.recipe import SearchRecipe
from sphynx.search.weight_steps import give_gradients, make_optimiser


def trained(*, fused: bool) -> list[torch.Tensor]:
    """Two weights, of which a sampled path leaves out the second in the first step."""
    weights = [nn.Parameter(torch.tensor([1.0, -2.0])), nn.Parameter(torch.tensor([3.0]))]
    optimiser = make_optimiser(SearchRecipe(), weights, torch.tensor(0.1))
    optimiser.param_groups[0]["fused"] = fused  # as on a GPU
    for step in range(3):
        weights[0].grad = torch.tensor([0.5, 1.0]) * (step + 1)
        weights[1].grad = None if step == 0 else torch.tensor([-1.0])
        optimiser.step()
    return [weight.detach() for weight in weights]


def test_weights_that_are_sampled_later_train_by_the_fused_kernel_too() -> None:
    for fused, plain in zip(trained(fused=True), trained(fused=False), strict=True):
        assert torch.allclose(fused, plain)


def test_momenta_that_start_at_zero_change_nothing() -> None:
    weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    recipe = SearchRecipe()
    plain = torch.optim.SGD(
        [weight], lr=0.1, momentum=recipe.momentum, nesterov=recipe.nesterov, weight_decay=recipe.weight_decay
    )
    for step in range(3):
        weight.grad = torch.tensor([0.5, 1.0]) * (step + 1)
        plain.step()
    torch.testing.assert_close(weight.detach(), trained(fused=False)[0])


def test_gradients_of_slices_take_their_weights_layout() -> None:
    """A sampled path reads a slice of a stacked kernel, whose gradient comes in torch's own layout."""
    kernel = torch.nn.Parameter(torch.randn(4, 3, 3, 3).contiguous(memory_format=torch.channels_last))
    unused = torch.nn.Parameter(torch.randn(2))
    loss = torch.nn.functional.conv2d(torch.randn(1, 3, 5, 5), kernel[:2]).square().sum()
    gradients = torch.autograd.grad(loss, [kernel, unused], allow_unused=True)
    give_gradients([kernel, unused], gradients)
    assert kernel.grad is not None and gradients[0] is not None
    assert kernel.grad.stride() == kernel.stride()
    assert torch.equal(kernel.grad, gradients[0])
    assert unused.grad is None


def test_how_a_search_runs_is_decided_by_the_device_unless_it_is_said() -> None:
    said = SearchRecipe(autocast=False, lanes=True)
    for device, by_device in (("cpu", False), ("cuda", True)):
        found = said.resolved(device)
        assert (found.autocast, found.cuda_graphs, found.tensor_cores, found.lanes) == (
            False,
            by_device,
            by_device,
            True,
        )
        assert found.resolved("cpu") == found  # nothing is left open
        place = PlacementRecipe().resolved(device)
        assert {place.autocast, place.cuda_graphs, place.tensor_cores} == {by_device}
