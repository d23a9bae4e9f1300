// Uniform residues are the same on every path: as many draws, those below the prime kept in their order.
#include "rlwe/sample.h"

#include <vector>

#include "check.h"
#include "cpu.h"

using namespace sphynx;
using namespace sphynx::rlwe;

namespace {

std::vector<std::int32_t> uniform(const Modulus& modulus, std::size_t count) {
    SeedStream stream(crypto::AesKey({5, 6}), 7);
    std::vector<std::int32_t> values(count), more(3);
    sample_uniform(stream, modulus, count, values.data());
    sample_uniform(stream, modulus, more.size(), more.data());  // from where the stream is now
    values.insert(values.end(), more.begin(), more.end());
    return values;
}

}  // namespace

int main() {
    for (const int bits : {20, 23, 28}) {
        // A modulus as far below the power of two as any may be (whether it is prime matters not here): one of 256 draws is thrown away.
        const Modulus modulus((1 << bits) - (1 << (bits - 8)));
        for (const std::size_t count : {0, 1, 15, 16, 17, 33, 1023, 1024, 1025, 4096}) {
            std::vector<std::int32_t> expected;
            {
                const LimitFeatures portable({});
                expected = uniform(modulus, count);
            }
            for (const std::int32_t value : expected)
                CHECK(value >= -(modulus.p() / 2) && value <= modulus.p() / 2);
            for (const CpuFeatures& features : features_to_test()) {
                const LimitFeatures limit(features);
                CHECK(uniform(modulus, count) == expected);
            }
        }
    }
    return test_result();
}
