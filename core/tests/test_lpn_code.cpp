// The code against a sum that is written from its definition, for any first row and number of rows; recorded indices.
#include "ot/lpn_code.h"

#include <algorithm>
#include <vector>

#include "check.h"
#include "cpu.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::ot;

namespace {

constexpr std::size_t kChunks = 3, kRows = kChunks * 512, kRegion = 128, kSecret = kLpnRowWeight * kRegion;
constexpr Block kSeed = {0x1122334455667788, 0x99aabbccddeeff00};

// The indices by the definition, row by row: words of one stream in memory order, 512 rows of each region in turn.
std::vector<std::size_t> defined_indices() {
    std::vector<std::uint16_t> words(kRows * kLpnRowWeight);
    expand_seed(AesKey(kSeed), 0, 0, reinterpret_cast<Block*>(words.data()), words.size() / 8);
    std::vector<std::size_t> indices;
    for (std::size_t row = 0; row < kRows; ++row) {
        for (std::size_t region = 0; region < kLpnRowWeight; ++region) {
            const std::size_t word = (row / 512 * kLpnRowWeight + region) * 512 + row % 512;
            indices.push_back(region * kRegion + words[word] % kRegion);
        }
    }
    return indices;
}

void check_rows(const std::vector<Block>& vector, std::size_t first, std::size_t count) {
    const LpnCode code(kSeed, kRegion);
    const std::vector<std::size_t> indices = defined_indices();
    std::vector<Block> out(count, Block{5, 6});
    code.add_rows(vector, first, out);
    for (std::size_t i = 0; i < count; ++i) {
        Block expected = {5, 6};
        for (std::size_t at = 0; at < kLpnRowWeight; ++at) {
            expected ^= vector[indices[(first + i) * kLpnRowWeight + at]];
        }
        CHECK(out[i] == expected);
    }
}

}  // namespace

int main() {
    Prg prg = Prg::fixed_seed_for_tests({1, 2});
    std::vector<Block> vector(kSecret);
    prg.fill_blocks(vector.data(), kSecret);
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        check_rows(vector, 0, kRows);
        check_rows(vector, 7, 1129);
        check_rows(vector, 510, 5);
        check_rows(vector, 400, 0);
    }
    const std::vector<std::size_t> indices = defined_indices(),
                                   recorded = {80, 128, 275, 425, 604, 737, 851, 921, 1151, 1191};
    CHECK(std::equal(recorded.begin(), recorded.end(), indices.begin() + 3 * kLpnRowWeight));
    for (const std::size_t region : {0, 3, 1 << 17}) CHECK_THROWS(LpnCode(kSeed, region));
    return test_result();
}
