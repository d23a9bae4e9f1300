// What a numpy buffer must be before the core touches it: exact type, C-contiguous, on the CPU, 8-byte
// aligned for words and blocks, and of the size that the operation needs. A mismatch raises; nothing is
// converted silently (bind arguments with .noconvert()). Blocks travel as uint64 arrays whose last axis is 2.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "views.h"

namespace sphynx::bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Bytes = Array<const std::uint8_t>;
using BytesOut = Array<std::uint8_t>;
using Words = Array<const std::uint64_t>;
using WordsOut = Array<std::uint64_t>;

inline void require(bool condition, const std::string& what) {
    if (!condition) throw std::invalid_argument(what);
}

template <class T>
std::span<T> sized(const Array<T>& array, std::size_t expected, const char* name) {
    require(array.size() == expected, std::string(name) + " must have " + std::to_string(expected) +
                                          " elements, it has " + std::to_string(array.size()));
    require(reinterpret_cast<std::uintptr_t>(array.data()) % sizeof(T) == 0,
            std::string(name) + " is not aligned to its element size");
    return {array.data(), array.size()};
}

// How many blocks an array of shape (..., 2) holds.
template <class T>
std::size_t block_count(const Array<T>& array, const char* name) {
    require(array.ndim() >= 1 && array.shape(array.ndim() - 1) == 2,
            std::string(name) + " must have shape (..., 2): two words per block");
    return array.size() / 2;
}

template <class T>
auto blocks(const Array<T>& array, std::size_t expected, const char* name) {
    using Element = std::conditional_t<std::is_const_v<T>, const Block, Block>;
    require(block_count(array, name) == expected, std::string(name) + " must hold " +
                                                      std::to_string(expected) + " blocks, it holds " +
                                                      std::to_string(array.size() / 2));
    return std::span(reinterpret_cast<Element*>(sized(array, 2 * expected, name).data()), expected);
}

// All that an array of shape (..., 2) holds.
template <class T>
auto blocks(const Array<T>& array, const char* name) {
    return blocks(array, block_count(array, name), name);
}

// a * b, refused when it would wrap: sizes from a caller are never trusted.
inline std::size_t product(std::size_t a, std::size_t b) {
    std::size_t result = 0;
    require(!__builtin_mul_overflow(a, b, &result), "the requested size overflows");
    return result;
}

// A bytes object that is filled in place; nobody else sees it before the call returns.
inline std::pair<nb::bytes, std::uint8_t*> new_bytes(std::size_t size) {
    require(size <= static_cast<std::size_t>(PY_SSIZE_T_MAX), "the message is too large");
    nb::bytes bytes = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!bytes.is_valid()) nb::raise_python_error();
    return {bytes, reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(bytes.ptr()))};
}

inline ByteView view_of(const nb::bytes& bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()};
}

inline nb::bytes bytes_of(const Block& block) {
    return nb::bytes(&block, sizeof block);
}

inline Block block_from(const nb::bytes& bytes, const char* name) {
    require(bytes.size() == sizeof(Block), std::string(name) + " must be 16 bytes");
    Block block;
    __builtin_memcpy(&block, bytes.c_str(), sizeof block);
    return block;
}

}  // namespace sphynx::bindings
