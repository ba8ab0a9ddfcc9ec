// MPI in binary form, as Open MPI and MPICH agree on it with their programs: handles, statuses,
// constants. No vendor's header is needed, so one library watches programs of both.
// mpi_abi_test.cc holds this against every mpi.h that is installed.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lockstep::watch::preload {

// As a call passes it: a word that is handed on whole. MPICH's is an int, so the upper half may
// hold anything.
struct Handle {
  std::uintptr_t word = 0;

  std::uint64_t Bits() const;  // what tells it from others
  friend bool operator==(Handle a, Handle b) { return a.Bits() == b.Bits(); }
};
static_assert(std::endian::native == std::endian::little);  // an int in memory begins like a word

using FileHandle = std::uintptr_t;  // a pointer in both families
using Aint = std::intptr_t;
using Offset = std::int64_t;

// X(field, MPI's name, Open MPI's object, MPICH's number)
#define LOCKSTEP_MPI_HANDLES(X)                                           \
  X(comm_null, MPI_COMM_NULL, ompi_mpi_comm_null, 0x04000000)             \
  X(comm_world, MPI_COMM_WORLD, ompi_mpi_comm_world, 0x44000000)          \
  X(comm_self, MPI_COMM_SELF, ompi_mpi_comm_self, 0x44000001)             \
  X(datatype_null, MPI_DATATYPE_NULL, ompi_mpi_datatype_null, 0x0c000000) \
  X(byte, MPI_BYTE, ompi_mpi_byte, 0x4c00010d)                            \
  X(op_null, MPI_OP_NULL, ompi_mpi_op_null, 0x18000000)                   \
  X(win_null, MPI_WIN_NULL, ompi_mpi_win_null, 0x20000000)                \
  X(file_null, MPI_FILE_NULL, ompi_mpi_file_null, 0)                      \
  X(group_null, MPI_GROUP_NULL, ompi_mpi_group_null, 0x08000000)          \
  X(group_empty, MPI_GROUP_EMPTY, ompi_mpi_group_empty, 0x48000000)       \
  X(request_null, MPI_REQUEST_NULL, ompi_request_null, 0x2c000000)

enum TypeClass : std::uint32_t {
  kBytes,
  kSigned,
  kUnsigned,
  kReal,
  kComplex,
  kLogical,
  kFloatInt = 16,
  kDoubleInt,
  kLongInt,
  kTwoInts,
  kShortInt,
  kLongDoubleInt,
};

// X(class, MPI's name, Open MPI's object, MPICH's number)
#define LOCKSTEP_MPI_TYPES(X)                                                        \
  X(kBytes, MPI_BYTE, ompi_mpi_byte, 0x4c00010d)                                     \
  X(kBytes, MPI_PACKED, ompi_mpi_packed, 0x4c00010f)                                 \
  X(kSigned, MPI_CHAR, ompi_mpi_char, 0x4c000101)                                    \
  X(kSigned, MPI_SIGNED_CHAR, ompi_mpi_signed_char, 0x4c000118)                      \
  X(kSigned, MPI_SHORT, ompi_mpi_short, 0x4c000203)                                  \
  X(kSigned, MPI_INT, ompi_mpi_int, 0x4c000405)                                      \
  X(kSigned, MPI_LONG, ompi_mpi_long, 0x4c000807)                                    \
  X(kSigned, MPI_LONG_LONG, ompi_mpi_long_long_int, 0x4c000809)                      \
  X(kSigned, MPI_INT8_T, ompi_mpi_int8_t, 0x4c000137)                                \
  X(kSigned, MPI_INT16_T, ompi_mpi_int16_t, 0x4c000238)                              \
  X(kSigned, MPI_INT32_T, ompi_mpi_int32_t, 0x4c000439)                              \
  X(kSigned, MPI_INT64_T, ompi_mpi_int64_t, 0x4c00083a)                              \
  X(kSigned, MPI_INTEGER, ompi_mpi_integer, 0x4c00041b)                              \
  X(kSigned, MPI_INTEGER1, ompi_mpi_integer1, 0x4c00012d)                            \
  X(kSigned, MPI_INTEGER2, ompi_mpi_integer2, 0x4c00022f)                            \
  X(kSigned, MPI_INTEGER4, ompi_mpi_integer4, 0x4c000430)                            \
  X(kSigned, MPI_INTEGER8, ompi_mpi_integer8, 0x4c000831)                            \
  X(kSigned, MPI_AINT, ompi_mpi_aint, 0x4c000843)                                    \
  X(kSigned, MPI_OFFSET, ompi_mpi_offset, 0x4c000844)                                \
  X(kSigned, MPI_COUNT, ompi_mpi_count, 0x4c000845)                                  \
  X(kSigned, MPI_WCHAR, ompi_mpi_wchar, 0x4c00040e)                                  \
  X(kSigned, MPI_CHARACTER, ompi_mpi_character, 0x4c00011a)                          \
  X(kUnsigned, MPI_UNSIGNED_CHAR, ompi_mpi_unsigned_char, 0x4c000102)                \
  X(kUnsigned, MPI_UNSIGNED_SHORT, ompi_mpi_unsigned_short, 0x4c000204)              \
  X(kUnsigned, MPI_UNSIGNED, ompi_mpi_unsigned, 0x4c000406)                          \
  X(kUnsigned, MPI_UNSIGNED_LONG, ompi_mpi_unsigned_long, 0x4c000808)                \
  X(kUnsigned, MPI_UNSIGNED_LONG_LONG, ompi_mpi_unsigned_long_long, 0x4c000819)      \
  X(kUnsigned, MPI_UINT8_T, ompi_mpi_uint8_t, 0x4c00013b)                            \
  X(kUnsigned, MPI_UINT16_T, ompi_mpi_uint16_t, 0x4c00023c)                          \
  X(kUnsigned, MPI_UINT32_T, ompi_mpi_uint32_t, 0x4c00043d)                          \
  X(kUnsigned, MPI_UINT64_T, ompi_mpi_uint64_t, 0x4c00083e)                          \
  X(kReal, MPI_FLOAT, ompi_mpi_float, 0x4c00040a)                                    \
  X(kReal, MPI_DOUBLE, ompi_mpi_double, 0x4c00080b)                                  \
  X(kReal, MPI_LONG_DOUBLE, ompi_mpi_long_double, 0x4c00100c)                        \
  X(kReal, MPI_REAL, ompi_mpi_real, 0x4c00041c)                                      \
  X(kReal, MPI_REAL4, ompi_mpi_real4, 0x4c000427)                                    \
  X(kReal, MPI_REAL8, ompi_mpi_real8, 0x4c000829)                                    \
  X(kReal, MPI_DOUBLE_PRECISION, ompi_mpi_dblprec, 0x4c00081f)                       \
  X(kComplex, MPI_C_COMPLEX, ompi_mpi_c_float_complex, 0x4c000840)                   \
  X(kComplex, MPI_C_DOUBLE_COMPLEX, ompi_mpi_c_double_complex, 0x4c001041)           \
  X(kComplex, MPI_C_LONG_DOUBLE_COMPLEX, ompi_mpi_c_long_double_complex, 0x4c002042) \
  X(kComplex, MPI_COMPLEX, ompi_mpi_cplex, 0x4c00081e)                               \
  X(kComplex, MPI_DOUBLE_COMPLEX, ompi_mpi_dblcplex, 0x4c001022)                     \
  X(kComplex, MPI_COMPLEX8, ompi_mpi_complex8, 0x4c000828)                           \
  X(kComplex, MPI_COMPLEX16, ompi_mpi_complex16, 0x4c00102a)                         \
  X(kLogical, MPI_C_BOOL, ompi_mpi_c_bool, 0x4c00013f)                               \
  X(kLogical, MPI_LOGICAL, ompi_mpi_logical, 0x4c00041d)                             \
  X(kFloatInt, MPI_FLOAT_INT, ompi_mpi_float_int, 0x8c000000)                        \
  X(kDoubleInt, MPI_DOUBLE_INT, ompi_mpi_double_int, 0x8c000001)                     \
  X(kLongInt, MPI_LONG_INT, ompi_mpi_long_int, 0x8c000002)                           \
  X(kTwoInts, MPI_2INT, ompi_mpi_2int, 0x4c000816)                                   \
  X(kShortInt, MPI_SHORT_INT, ompi_mpi_short_int, 0x8c000003)                        \
  X(kLongDoubleInt, MPI_LONG_DOUBLE_INT, ompi_mpi_longdbl_int, 0x8c000004)

// X(MPI's name, Open MPI's object, MPICH's number), in the order of what events hold.
#define LOCKSTEP_MPI_OPERATORS(X)                 \
  X(MPI_MAX, ompi_mpi_op_max, 0x58000001)         \
  X(MPI_MIN, ompi_mpi_op_min, 0x58000002)         \
  X(MPI_SUM, ompi_mpi_op_sum, 0x58000003)         \
  X(MPI_PROD, ompi_mpi_op_prod, 0x58000004)       \
  X(MPI_LAND, ompi_mpi_op_land, 0x58000005)       \
  X(MPI_BAND, ompi_mpi_op_band, 0x58000006)       \
  X(MPI_LOR, ompi_mpi_op_lor, 0x58000007)         \
  X(MPI_BOR, ompi_mpi_op_bor, 0x58000008)         \
  X(MPI_LXOR, ompi_mpi_op_lxor, 0x58000009)       \
  X(MPI_BXOR, ompi_mpi_op_bxor, 0x5800000a)       \
  X(MPI_MAXLOC, ompi_mpi_op_maxloc, 0x5800000c)   \
  X(MPI_MINLOC, ompi_mpi_op_minloc, 0x5800000b)   \
  X(MPI_REPLACE, ompi_mpi_op_replace, 0x5800000d) \
  X(MPI_NO_OP, ompi_mpi_op_no_op, 0x5800000e)

struct Abi {
  std::size_t handle_bytes = 0;  // in memory; 0: a library of neither family
  std::size_t status_bytes = 0;
  std::size_t source_at = 0;  // in a status
  std::size_t tag_at = 0;
  std::size_t error_at = 0;
  int any_source = 0;
  int proc_null = 0;
  int cart = 0;  // what MPI_Topo_test says of MPI_Cart_create's
  int graph = 0;
  int lock_exclusive = 0;
  int error_truncate = 0;  // classes of errors
  int error_in_status = 0;
  std::uintptr_t in_place = 0;
  std::uintptr_t status_ignore = 0;  // one status, or all
#define LOCKSTEP_FIELD(field, ...) Handle field = {};
  LOCKSTEP_MPI_HANDLES(LOCKSTEP_FIELD)
#undef LOCKSTEP_FIELD
};

// Without the handles, which are known in a process of the family only.
inline constexpr Abi kOpenMpi = {.handle_bytes = 8,
                                 .status_bytes = 24,
                                 .source_at = 0,
                                 .tag_at = 4,
                                 .error_at = 8,
                                 .any_source = -1,
                                 .proc_null = -2,
                                 .cart = 1,
                                 .graph = 2,
                                 .lock_exclusive = 1,
                                 .error_truncate = 15,
                                 .error_in_status = 18,
                                 .in_place = 1,
                                 .status_ignore = 0};
inline constexpr Abi kMpich = {.handle_bytes = 4,
                               .status_bytes = 20,
                               .source_at = 8,
                               .tag_at = 12,
                               .error_at = 16,
                               .any_source = -2,
                               .proc_null = -1,
                               .cart = 2,
                               .graph = 1,
                               .lock_exclusive = 234,
                               .error_truncate = 14,
                               .error_in_status = 17,
                               .in_place = ~std::uintptr_t{0},
                               .status_ignore = 1};

// The same in both families.
inline constexpr int kMpiSuccess = 0;
inline constexpr int kMpiErrOther =
    15;  // MPI_ERR_OTHER of one, an error without a name of the other
inline constexpr int kMpiAnyTag = -1;
inline constexpr int kMpiUndefined = -32766;
inline constexpr int kMpiThreadMultiple = 3;
inline constexpr int kMpiDistGraph = 3;

// Of this process, from its MPI_Init on.
extern Abi abi;

inline std::uint64_t Handle::Bits() const {
  return abi.handle_bytes == sizeof(int) ? static_cast<std::uint32_t>(word) : word;
}

// False where the program's MPI is neither, or where it was loaded in a scope of its own
// (Python's).
bool LearnAbi();

// Code between two addresses.
struct Code {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool Holds(std::uintptr_t at) const { return begin <= at && at < end; }
};
extern Code program_code;  // of the program's own file
extern Code library_code;
// The library may call MPI as programs do: ROMIO does for files, also as a module of Open MPI. To
// look for modules takes as long as half a call, so it is done once files are used.
extern std::atomic<bool> uses_files;
bool IsModuleCode(std::uintptr_t at);
inline bool OfLibrary(const void* site) {
  const auto at = reinterpret_cast<std::uintptr_t>(site);
  if (program_code.Holds(at)) return false;
  return library_code.Holds(at) || (uses_files.load(std::memory_order_relaxed) && IsModuleCode(at));
}

// The handle that a row of the lists above names, in this process.
Handle NamedHandle(const char* open_mpi, std::uint32_t mpich);

// Handles in memory of the program.
struct Handles {
  const void* at;

  Handle operator[](int each) const {
    Handle handle;
    std::memcpy(&handle.word, static_cast<const char*>(at) + Place(each), abi.handle_bytes);
    return handle;
  }
  Handle operator*() const { return (*this)[0]; }
  Handles operator+(int each) const { return {static_cast<const char*>(at) + Place(each)}; }

 private:
  static std::ptrdiff_t Place(int each) {
    return each * static_cast<std::ptrdiff_t>(abi.handle_bytes);
  }
};

// One status, or several.
struct Statuses {
  void* at;

  bool Ignored() const { return reinterpret_cast<std::uintptr_t>(at) == abi.status_ignore; }
  int Source() const { return Int(abi.source_at); }
  int Tag() const { return Int(abi.tag_at); }
  int Error() const { return Int(abi.error_at); }
  Statuses operator+(int each) const {
    return {static_cast<char*>(at) + each * static_cast<std::ptrdiff_t>(abi.status_bytes)};
  }

 private:
  int Int(std::size_t place) const {
    int value = 0;
    std::memcpy(&value, static_cast<const char*>(at) + place, sizeof value);
    return value;
  }
};

// Room for one status of either family.
struct OwnStatus {
  alignas(8) char bytes[24];
};

}  // namespace lockstep::watch::preload
