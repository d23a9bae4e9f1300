#include "cpu.h"

#include "check.h"

using namespace sphynx;

int main() {
    CHECK(usable_features() == hardware_features());
    {
        ForcePortable portable;
        CHECK(usable_features() == CpuFeatures{});
    }
    CHECK(usable_features() == hardware_features());
    return test_result();
}
