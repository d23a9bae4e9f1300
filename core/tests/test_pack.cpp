// Every width, odd counts, exact buffer ends (the sanitizer build watches them), and the bit order by hand.
#include "bits/pack.h"

#include <vector>

#include "check.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;

int main() {
    Prg prg = Prg::fixed_seed_for_tests({4, 4});
    for (unsigned width = 1; width <= 64; ++width) {
        for (const std::size_t count : {0, 1, 7, 8, 65}) {
            std::vector<std::uint64_t> values(count), back(count);
            prg.fill(values.data(), 8 * count);
            std::vector<std::uint8_t> bytes(packed_bytes(count, width));
            pack_ring(values.data(), count, width, bytes.data());
            for (std::size_t bit = 0; bit < count * width; ++bit) {
                CHECK((bytes[bit / 8] >> (bit % 8) & 1u) == (values[bit / width] >> (bit % width) & 1u));
            }
            unpack_ring(bytes.data(), count, width, back.data());
            for (std::size_t j = 0; j < count; ++j)
                CHECK(back[j] == (values[j] & (~std::uint64_t{0} >> (64 - width))));
        }
    }
    return test_result();
}
