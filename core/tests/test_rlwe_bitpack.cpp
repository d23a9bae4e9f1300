// Residues on the wire: bit by bit where they should be, back as they were, and nothing else is taken. Buffers are exact,
// so that a sanitizer sees a read beyond them.
#include "rlwe/bitpack.h"

#include <random>
#include <vector>

#include "check.h"
#include "cpu.h"

using namespace sphynx;
using namespace sphynx::rlwe;

namespace {

// Bits first .. first + bits - 1 of the wire.
std::int32_t bits_at(const std::vector<std::uint8_t>& wire, std::size_t first, int bits) {
    std::int32_t value = 0;
    for (int b = 0; b < bits; ++b) {
        const std::size_t at = first + static_cast<std::size_t>(b);
        value |= ((wire[at / 8] >> (at % 8)) & 1) << b;
    }
    return value;
}

void put_ones(std::vector<std::uint8_t>& wire, std::size_t first, int bits) {
    for (std::size_t at = first; at < first + static_cast<std::size_t>(bits); ++at)
        wire[at / 8] = static_cast<std::uint8_t>(wire[at / 8] | (1 << (at % 8)));
}

void check_wire(const Modulus& modulus, std::size_t count, std::mt19937& generator) {
    const std::int32_t p = modulus.p();
    const int bits = modulus.bits();
    const std::int32_t edges[] = {0, -1, p / 2, -(p / 2)};
    std::vector<std::int32_t> values(count), back(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] =
            i < 4 ? edges[i] : static_cast<std::int32_t>(generator() % static_cast<unsigned>(p)) - p / 2;
    std::vector<std::uint8_t> wire(packed_bytes(count, bits));
    CHECK(pack(values.data(), count, modulus, wire.data()) == wire.data() + wire.size());
    CHECK(unpack(wire.data(), count, modulus, back.data()) == wire.data() + wire.size());
    CHECK(back == values);
    const auto width = static_cast<std::size_t>(bits);
    for (std::size_t i = 0; i < count; ++i) {
        CHECK(bits_at(wire, i * width, bits) == modulus.canonical(values[i]));
        auto hostile = wire;
        put_ones(hostile, i * width, bits);  // 2^bits - 1 is not a residue
        CHECK_THROWS(unpack(hostile.data(), count, modulus, back.data()));
    }
    for (std::size_t filler = count * width; filler < 8 * wire.size(); ++filler) {
        auto hostile = wire;
        put_ones(hostile, filler, 1);
        CHECK_THROWS(unpack(hostile.data(), count, modulus, back.data()));
    }
}

}  // namespace

int main() {
    std::mt19937 generator(6);
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        // Each width has tables of its own.
        for (int bits = Modulus::kLeastBits; bits <= Modulus::kMostBits; ++bits) {
            std::int32_t prime;
            largest_ntt_primes(bits, 64, 1, &prime);
            for (std::size_t count = 0; count <= 50; ++count) check_wire(Modulus(prime), count, generator);
        }
    }
    return test_result();
}
