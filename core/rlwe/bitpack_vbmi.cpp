// VBMI: sixteen residues at a time, by tables of where each byte comes from.
#if defined(__x86_64__)
#include <immintrin.h>

#include <array>

#include "rlwe/bitpack.h"

namespace sphynx::rlwe {
namespace {

constexpr int kLeastBits = Modulus::kLeastBits, kMostBits = Modulus::kMostBits;
constexpr int kSixteen = 16;

struct Bytes {
    alignas(64) std::uint8_t at[64]{};
    __m512i vector() const { return _mm512_load_si512(at); }
};
struct Words {
    alignas(64) std::uint64_t at[8]{};
    __m512i vector() const { return _mm512_load_si512(at); }
};

constexpr std::uint64_t first_bytes(int bits) {
    return ~std::uint64_t{0} >> (64 - 2 * bits);
}

// Two residues are in a word, eight such pairs in a vector. A word of what is packed has bits of at most three pairs: term t of
// it is what pair `pair[t]` adds, byte by byte from bit `shift[t]` on, in the bytes of `has[t]`.
struct PackTable {
    static constexpr int kTerms = 3;
    Words pair[kTerms];
    Bytes shift[kTerms];
    std::uint64_t has[kTerms] = {};
};

constexpr PackTable pack_table(int bits) {
    PackTable table;
    const int pair_bits = 2 * bits;
    for (int word = 0; word < 8; ++word) {
        const int first = 64 * word / pair_bits;
        for (int t = 0; t < PackTable::kTerms; ++t)
            table.pair[t].at[word] = static_cast<std::uint64_t>(first + t) % 8;
        for (int byte = 8 * word; byte < 8 * word + 8 && byte < 2 * bits; ++byte) {
            const int pair = 8 * byte / pair_bits, offset = 8 * byte % pair_bits, held = pair_bits - offset;
            table.shift[pair - first].at[byte] = static_cast<std::uint8_t>(offset);
            table.has[pair - first] |= std::uint64_t{1} << byte;
            if (held >= 8 || pair == 7) continue;
            // The next pair's first bits, above those: words rotate, and the highest bits of a pair's word are zero.
            table.shift[pair + 1 - first].at[byte] = static_cast<std::uint8_t>(64 - held);
            table.has[pair + 1 - first] |= std::uint64_t{1} << byte;
        }
    }
    return table;
}

// The eight bytes that a residue begins in, and at which bit: of the first eight residues, then of the others.
struct UnpackTable {
    Bytes from[2];
    Words shift[2];
};

constexpr UnpackTable unpack_table(int bits) {
    UnpackTable table;
    for (int i = 0; i < kSixteen; ++i) {
        for (int byte = 0; byte < 8; ++byte)
            table.from[i / 8].at[8 * (i % 8) + byte] = static_cast<std::uint8_t>(i * bits / 8 + byte);
        table.shift[i / 8].at[i % 8] = static_cast<std::uint64_t>(i * bits % 8);
    }
    return table;
}

template <class Table>
constexpr auto tables_of(Table (*table)(int)) {
    std::array<Table, kMostBits - kLeastBits + 1> tables{};
    for (int bits = kLeastBits; bits <= kMostBits; ++bits)
        tables[static_cast<std::size_t>(bits - kLeastBits)] = table(bits);
    return tables;
}

}  // namespace

void pack_sixteens(const std::int32_t* centred, std::size_t sixteens, const Modulus& modulus,
                   std::uint8_t* out) {
    static constexpr auto tables = tables_of(pack_table);
    const int bits = modulus.bits();
    const PackTable& table = tables[static_cast<std::size_t>(bits - kLeastBits)];
    const __m512i p = _mm512_set1_epi32(modulus.p()), low_half = _mm512_set1_epi64(0xffffffff);
    const __m128i above = _mm_cvtsi32_si128(bits);
    for (std::size_t i = 0; i < sixteens; ++i, centred += kSixteen, out += 2 * bits) {
        const __m512i value = _mm512_loadu_si512(centred);
        const __m512i canonical = _mm512_add_epi32(value, _mm512_and_si512(p, _mm512_srai_epi32(value, 31)));
        const __m512i pairs = _mm512_or_si512(_mm512_and_si512(canonical, low_half),
                                              _mm512_sll_epi64(_mm512_srli_epi64(canonical, 32), above));
        __m512i packed = _mm512_setzero_si512();
        for (int t = 0; t < PackTable::kTerms; ++t) {
            const __m512i from = _mm512_permutexvar_epi64(table.pair[t].vector(), pairs);
            packed = _mm512_or_si512(
                packed, _mm512_maskz_multishift_epi64_epi8(table.has[t], table.shift[t].vector(), from));
        }
        _mm512_mask_storeu_epi8(out, first_bytes(bits), packed);
    }
}

bool unpack_sixteens(const std::uint8_t* in, std::size_t sixteens, const Modulus& modulus,
                     std::int32_t* centred) {
    static constexpr auto tables = tables_of(unpack_table);
    const int bits = modulus.bits();
    const UnpackTable& table = tables[static_cast<std::size_t>(bits - kLeastBits)];
    const __m512i p = _mm512_set1_epi32(modulus.p()), last = _mm512_set1_epi32(modulus.p() - 1),
                  half = _mm512_set1_epi32(modulus.p() / 2), mask = _mm512_set1_epi32((1 << bits) - 1);
    const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    __m512i outside = _mm512_setzero_si512();
    for (std::size_t i = 0; i < sixteens; ++i, in += 2 * bits, centred += kSixteen) {
        const __m512i bytes = _mm512_maskz_loadu_epi8(first_bytes(bits), in);
        __m512i words[2];
        for (int which = 0; which < 2; ++which) {
            words[which] = _mm512_srlv_epi64(_mm512_permutexvar_epi8(table.from[which].vector(), bytes),
                                             table.shift[which].vector());
        }
        const __m512i value = _mm512_and_si512(_mm512_permutex2var_epi32(words[0], evens, words[1]), mask);
        outside = _mm512_or_si512(outside, _mm512_sub_epi32(last, value));
        const __m512i over = _mm512_srai_epi32(_mm512_sub_epi32(half, value), 31);
        _mm512_storeu_si512(centred, _mm512_sub_epi32(value, _mm512_and_si512(p, over)));
    }
    return _mm512_movepi32_mask(outside) == 0;
}

}  // namespace sphynx::rlwe
#endif
