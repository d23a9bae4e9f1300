// CPU features, AES-128 and the PRG.
#include <optional>

#include "bindings/arrays.h"
#include "cpu.h"
#include "crypto/aes.h"
#include "crypto/prg.h"
#include "threads.h"

namespace {

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::bindings;

nb::dict cpu_features() {
    const CpuFeatures& cpu = hardware_features();
    nb::dict found;
    found["aesni"] = cpu.aesni;
    found["vaes"] = cpu.vaes;
    found["avx2"] = cpu.avx2;
    found["avx512"] = cpu.avx512;
    found["avx512_vnni"] = cpu.avx512_vnni;
    found["vpclmul"] = cpu.vpclmul;
    found["vbmi"] = cpu.vbmi;
    found["armv8_aes"] = cpu.armv8_aes;
    found["pmull"] = cpu.pmull;
    found["dotprod"] = cpu.dotprod;
    return found;
}

// Python's tests switch it on and off.
void force_portable(bool on) {
    static std::optional<LimitFeatures> limit;
    limit.reset();
    if (on) limit.emplace(CpuFeatures{});
}

void encrypt(nb::bytes key, Words in, WordsOut out) {
    const std::size_t count = block_count(in, "blocks");
    const Block* from = blocks(in, count, "blocks").data();
    Block* to = blocks(out, count, "out").data();
    const AesKey aes(block_from(key, "key"));
    nb::gil_scoped_release unlocked;
    aes_encrypt(aes, from, to, count);
}

void counter_stream(nb::bytes key, nb::bytes counter, WordsOut out) {
    const std::size_t count = block_count(out, "out");
    Block* to = blocks(out, count, "out").data();
    const AesKey aes(block_from(key, "key"));
    const Block first = block_from(counter, "counter");
    nb::gil_scoped_release unlocked;
    aes_counter_stream(aes, first, to, count);
}

void expand(nb::bytes seed, std::uint64_t stream, std::uint64_t first_block, WordsOut out, unsigned threads) {
    const std::size_t count = block_count(out, "out");
    Block* to = blocks(out, count, "out").data();
    const AesKey key(block_from(seed, "seed"));
    nb::gil_scoped_release unlocked;
    expand_seed(key, stream, first_block, to, count, threads);
}

}  // namespace

void bind_crypto(nb::module_& module) {
    module.def("cpu_features", cpu_features);
    module.def("aes_path", aes_path_name);
    module.def("available_cores", available_cores);
    module.def("limit_cores", limit_cores, "most"_a);
    module.def("force_portable_for_tests", force_portable, "on"_a);
    module.def("aes_encrypt", encrypt, "key"_a, "blocks"_a.noconvert(), "out"_a.noconvert());
    module.def("aes_counter_stream", counter_stream, "key"_a, "counter"_a, "out"_a.noconvert());
    module.def("expand_seed", expand, "seed"_a, "stream"_a, "first_block"_a, "out"_a.noconvert(),
               "threads"_a = 1);

    nb::class_<Prg>(module, "Prg")
        .def(nb::init<>())
        .def_static(
            "fixed_seed_for_tests",
            [](nb::bytes seed) { return Prg::fixed_seed_for_tests(block_from(seed, "seed")); }, "seed"_a)
        .def(
            "fill",
            [](Prg& prg, BytesOut out) {
                nb::gil_scoped_release unlocked;
                prg.fill(out.data(), out.size());
            },
            "out"_a.noconvert())
        .def(
            "fill_words",
            [](Prg& prg, WordsOut out) {
                std::uint64_t* to = sized(out, out.size(), "out").data();
                nb::gil_scoped_release unlocked;
                prg.fill(to, out.size() * sizeof *to);
            },
            "out"_a.noconvert());
}
