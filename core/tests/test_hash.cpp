// H against its definition, block by block, on both paths.
#include "crypto/hash.h"

#include <vector>

#include "check.h"
#include "cpu.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

void check_definition() {
    Prg prg = Prg::fixed_seed_for_tests({3, 4});
    const AesKey key(prg.block());
    for (std::size_t count : {1, 7, 8, 16, 37}) {
        std::vector<Block> in(count), out(count), tweaks(count);
        prg.fill_blocks(in.data(), count);
        prg.fill_blocks(tweaks.data(), count);
        hash_blocks(key, in.data(), tweaks.data(), out.data(), count);
        for (std::size_t j = 0; j < count; ++j) {
            const Block masked = sigma(in[j]) ^ tweaks[j];
            Block cipher;
            aes_encrypt(key, &masked, &cipher, 1);
            CHECK(out[j] == (cipher ^ sigma(in[j])));
        }
        hash_blocks(key, in.data(), tweaks.data(), in.data(), count);
        CHECK(in == out);
    }
}

}  // namespace

int main() {
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        check_definition();
    }

    // sigma is invertible and has no fixed point but 0: both needed of an orthomorphism.
    CHECK((sigma(Block{0, 0}) == Block{0, 0}));
    for (int bit = 0; bit < 64; ++bit) {
        const Block low{std::uint64_t{1} << bit, 0}, high{0, std::uint64_t{1} << bit};
        CHECK((sigma(low) == Block{0, std::uint64_t{1} << bit}));
        CHECK((sigma(high) == Block{std::uint64_t{1} << bit, std::uint64_t{1} << bit}));
    }
    return test_result();
}
