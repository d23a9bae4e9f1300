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

constexpr std::size_t kRows = 500, kSecret = 1000;
constexpr Block kSeed = {0x1122334455667788, 0x99aabbccddeeff00};

// The indices by the definition: words of one stream, in memory order, ten to a row.
std::vector<std::size_t> defined_indices() {
    std::vector<std::uint32_t> words(kRows * kLpnRowWeight);
    expand_seed(AesKey(kSeed), 0, 0, reinterpret_cast<Block*>(words.data()), words.size() / 4);
    std::vector<std::size_t> indices;
    for (const std::uint32_t word : words) indices.push_back(std::uint64_t{word} * kSecret >> 32);
    return indices;
}

void check_rows(const std::vector<Block>& vector, std::size_t first, std::size_t count) {
    const LpnCode code(kSeed, kSecret);
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
        check_rows(vector, 0, 300);
        check_rows(vector, 7, 129);
        check_rows(vector, 126, 5);
        check_rows(vector, 400, 0);
    }
    const std::vector<std::size_t> indices = defined_indices(),
                                   recorded = {706, 647, 229, 943, 640, 877, 522, 596, 770, 211};
    CHECK(std::equal(recorded.begin(), recorded.end(), indices.begin() + 3 * kLpnRowWeight));
    return test_result();
}
