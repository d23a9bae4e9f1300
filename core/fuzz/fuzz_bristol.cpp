// Bristol Fashion text: refused, or a circuit whose own text reads back as the same.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "circuit/bristol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const std::string_view text(reinterpret_cast<const char*>(data), size);
        const std::string written = sphynx::circuit::write_bristol(sphynx::circuit::read_bristol(text));
        if (sphynx::circuit::write_bristol(sphynx::circuit::read_bristol(written)) != written) std::abort();
    } catch (const std::invalid_argument&) {
    }
    return 0;
}
