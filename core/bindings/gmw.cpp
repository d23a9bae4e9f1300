// Bit-sliced GMW: the carry tree and the multiplexer.
#include "bindings/arrays.h"
#include "bits/transpose.h"
#include "gmw/carry_tree.h"
#include "gmw/multiplex.h"

namespace {

using namespace sphynx;
using namespace sphynx::bindings;

// Five planes per inner node, [5][inner][words]: a, b, c, ab, ac.
NodeMasks masks_of(const CarryTree& tree, const Words& masks, std::size_t words) {
    const std::size_t rows = product(tree.inner_count(), words);
    const std::uint64_t* base = sized(masks, product(5, rows), "masks");
    return {base, base + rows, base + 2 * rows, base + 3 * rows, base + 4 * rows};
}

void require_level(const CarryTree& tree, std::size_t level) {
    require(level < tree.levels().size(), "the tree has no such level");
}

void open_carries(const CarryTree& tree, std::size_t level, std::size_t words, Words g, Words p, Words masks,
                  WordsOut out) {
    require_level(tree, level);
    const std::uint64_t* generate = sized(g, product(tree.node_count(), words), "g");
    const std::uint64_t* propagate = sized(p, product(tree.node_count(), words), "p");
    const NodeMasks nodes = masks_of(tree, masks, words);
    std::uint64_t* to = sized(out, product(tree.opened_rows(level), words), "out");
    nb::gil_scoped_release unlocked;
    open_level(tree, level, words, generate, propagate, nodes, to);
}

void close_carries(const CarryTree& tree, std::size_t level, std::size_t words, bool adds_public, Words mine,
                   Words theirs, Words masks, WordsOut g, WordsOut p) {
    require_level(tree, level);
    const std::size_t opened = product(tree.opened_rows(level), words);
    const std::uint64_t *sent = sized(mine, opened, "mine"), *received = sized(theirs, opened, "theirs");
    const NodeMasks nodes = masks_of(tree, masks, words);
    std::uint64_t* generate = sized(g, product(tree.node_count(), words), "g");
    std::uint64_t* propagate = sized(p, product(tree.node_count(), words), "p");
    nb::gil_scoped_release unlocked;
    close_level(tree, level, words, adds_public, sent, received, nodes, generate, propagate);
}

// opened_bits: [3][plane_words] d, e1, e2; shares: [6][count] delta, b1, b2, delta b1, delta b2, delta v.
void multiplex_batch(Words opened_bits, Words z, Words shares, Words own, unsigned k, unsigned wrap_shift,
                     bool adds_public, WordsOut y) {
    require(k >= 1 && k <= 64, "k must be 1 to 64");
    require(wrap_shift >= 1 && wrap_shift <= 64, "wrap_shift must be 1 to 64");
    const std::size_t count = y.size(), words = plane_words(count);
    const std::uint64_t* bits = sized(opened_bits, product(3, words), "opened_bits");
    const std::uint64_t* s = sized(shares, product(6, count), "shares");
    const OpenedBits opened{bits, bits + words, bits + 2 * words, sized(z, count, "z")};
    const MultiplexShares views{s, s + count, s + 2 * count, s + 3 * count, s + 4 * count, s + 5 * count};
    const std::uint64_t* mine = sized(own, count, "own");
    std::uint64_t* to = sized(y, count, "y");
    nb::gil_scoped_release unlocked;
    multiplex(opened, views, mine, count, k, wrap_shift, adds_public, to);
}

}  // namespace

void bind_gmw(nb::module_& module) {
    nb::class_<CarryTree>(module, "CarryTree")
        .def(nb::init<unsigned, unsigned>(), "leaves"_a, "low"_a)
        .def_prop_ro("node_count", &CarryTree::node_count)
        .def_prop_ro("inner_count", &CarryTree::inner_count)
        .def_prop_ro("level_count", [](const CarryTree& tree) { return tree.levels().size(); })
        .def_prop_ro("sign_node", &CarryTree::sign_node)
        .def_prop_ro("truncation_node", &CarryTree::truncation_node)
        .def(
            "opened_rows",
            [](const CarryTree& tree, std::size_t level) {
                require_level(tree, level);
                return tree.opened_rows(level);
            },
            "level"_a)
        .def("open_level", open_carries, "level"_a, "words"_a, "g"_a.noconvert(), "p"_a.noconvert(),
             "masks"_a.noconvert(), "out"_a.noconvert())
        .def("close_level", close_carries, "level"_a, "words"_a, "adds_public"_a, "mine"_a.noconvert(),
             "theirs"_a.noconvert(), "masks"_a.noconvert(), "g"_a.noconvert(), "p"_a.noconvert());
    module.def("multiplex", multiplex_batch, "opened_bits"_a.noconvert(), "z"_a.noconvert(),
               "shares"_a.noconvert(), "own"_a.noconvert(), "k"_a, "wrap_shift"_a, "adds_public"_a,
               "y"_a.noconvert());
}
