#include "cpu.h"

#include <set>
#include <string>

#include "check.h"
#include "crypto/aes.h"
#include "ring/dot.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

// The paths that are some CPU's best, of those that can run here.
void check_that_every_path_is_tested() {
    const CpuFeatures& cpu = hardware_features();
    std::set<std::string> aes, dot;
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        CHECK(usable_features() == features);
        aes.insert(aes_path_name());
        if (const auto* kernel = ring::best_dot_kernel(32, true)) dot.insert(kernel->name);
    }
    CHECK(aes.contains("portable"));
    CHECK(aes.contains("vaes512") == (cpu.vaes && cpu.avx512));
    CHECK(aes.contains("vaes") == cpu.vaes);
    CHECK(aes.contains("aesni") == cpu.aesni);
    CHECK(aes.contains("armv8") == cpu.armv8_aes);
    CHECK(dot.contains("avx512-vnni") == cpu.avx512_vnni);
    CHECK(dot.contains("avx2") == cpu.avx2);
    CHECK(dot.contains("dotprod") == cpu.dotprod);
}

}  // namespace

int main() {
    CHECK(usable_features() == hardware_features());
    {
        const LimitFeatures portable({});
        CHECK(usable_features() == CpuFeatures{});
        {
            const LimitFeatures all(hardware_features());
            CHECK(usable_features() == hardware_features());
        }
        CHECK(usable_features() == CpuFeatures{});
    }
    CHECK(usable_features() == hardware_features());
    check_that_every_path_is_tested();
    CHECK(usable_features() == hardware_features());
    return test_result();
}
