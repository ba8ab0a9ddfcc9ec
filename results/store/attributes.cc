// Values as HDF5 attributes, and back with a check of the stored type. Booleans have h5py's form.
// An error is noted once and stops what follows, so callers need no checks in between.
#include "results/store/attributes.h"

#include <array>

namespace lockstep::results::store {
namespace {

hdf5::Handle Copy(hid_t predefined) { return hdf5::Handle(H5Tcopy(predefined), H5Tclose); }

hdf5::Handle BoolType(hid_t base) {
  hdf5::Handle type(H5Tenum_create(base), H5Tclose);
  std::int8_t value = 0;
  H5Tenum_insert(type.get(), "FALSE", &value);
  value = 1;
  H5Tenum_insert(type.get(), "TRUE", &value);
  return type;
}

hdf5::Handle TextType(std::size_t bytes) {
  hdf5::Handle type = Copy(H5T_C_S1);
  H5Tset_size(type.get(), bytes);
  H5Tset_strpad(type.get(), bytes == H5T_VARIABLE ? H5T_STR_NULLTERM : H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

// `of_numbers`: the types of Value's numbers in their order, and what its bool is made of.
hdf5::Handle TypeOf(const Value& like, std::size_t text_bytes,
                    const std::array<hid_t, 5>& of_numbers) {
  if (std::holds_alternative<std::string>(like)) return TextType(text_bytes);
  const hid_t type = of_numbers[like.index()];
  return std::holds_alternative<bool>(like) ? BoolType(type) : Copy(type);
}

// Whether a stored type can become a value of the alternative of `like` without loss of meaning.
bool Fits(hid_t stored, const Value& like) {
  const H5T_class_t kind = H5Tget_class(stored);
  if (std::holds_alternative<std::string>(like)) return kind == H5T_STRING;
  if (std::holds_alternative<double>(like)) return kind == H5T_FLOAT;
  if (std::holds_alternative<bool>(like)) return kind == H5T_ENUM && H5Tget_size(stored) == 1;
  return kind == H5T_INTEGER;
}

// Texts in files of other writers may be of fixed length.
bool ReadText(hid_t attribute, hid_t stored, std::string& text) {
  if (H5Tis_variable_str(stored) > 0) {
    char* data = nullptr;
    const hdf5::Handle type = TextType(H5T_VARIABLE);
    if (H5Aread(attribute, type.get(), &data) < 0) return false;
    text = data == nullptr ? "" : data;
    H5free_memory(data);
    return true;
  }
  text.resize(H5Tget_size(stored));
  if (H5Aread(attribute, stored, text.data()) < 0) return false;
  text.resize(text.find_last_not_of('\0') + 1);
  return true;
}

template <typename T>
bool ReadNumber(hid_t attribute, hid_t type, Value& value) {
  T number{};
  if (H5Aread(attribute, type, &number) < 0) return false;
  value = number;
  return true;
}

bool Read(hid_t attribute, hid_t stored, Value& value) {
  const hdf5::Handle type = MemoryType(value, 1);
  if (auto* text = std::get_if<std::string>(&value)) return ReadText(attribute, stored, *text);
  if (std::holds_alternative<bool>(value)) {
    std::int8_t flag = 0;
    if (H5Aread(attribute, type.get(), &flag) < 0) return false;
    value = flag != 0;
    return true;
  }
  return std::visit(
      [&](auto like) {
        if constexpr (std::is_same_v<decltype(like), std::string>)
          return false;
        else
          return ReadNumber<decltype(like)>(attribute, type.get(), value);
      },
      value);
}

}  // namespace

hdf5::Handle FileType(const Value& like, std::size_t text_bytes) {
  return TypeOf(like, text_bytes,
                {H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U64LE, H5T_IEEE_F64LE, H5T_STD_I8LE});
}

hdf5::Handle MemoryType(const Value& like, std::size_t text_bytes) {
  return TypeOf(
      like, text_bytes,
      {H5T_NATIVE_INT32, H5T_NATIVE_INT64, H5T_NATIVE_UINT64, H5T_NATIVE_DOUBLE, H5T_NATIVE_INT8});
}

void AttributeSink::Put(const char* name, const Value& value, const char* units) {
  PutOne(name, value);
  if (*units != '\0') PutOne(std::string(name) + ".units", std::string(units));
}

void AttributeSink::PutOne(const std::string& name, const Value& value) {
  if (!file_.ok()) return;
  if (H5Aexists(object_, name.c_str()) > 0) H5Adelete(object_, name.c_str());
  const hdf5::Handle file_type = FileType(value, H5T_VARIABLE);
  const hdf5::Handle memory_type = MemoryType(value, H5T_VARIABLE);
  const hdf5::Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const hdf5::Handle attribute(
      H5Acreate2(object_, name.c_str(), file_type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  const herr_t written = std::visit(
      [&](const auto& field) {
        using T = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<T, std::string>) {
          const char* data = field.c_str();
          return H5Awrite(attribute.get(), memory_type.get(), &data);
        } else if constexpr (std::is_same_v<T, bool>) {
          const std::int8_t flag = field ? 1 : 0;
          return H5Awrite(attribute.get(), memory_type.get(), &flag);
        } else {
          return H5Awrite(attribute.get(), memory_type.get(), &field);
        }
      },
      value);
  if (written < 0) file_.Note("attribute {} of {} refused", name, path_);
}

Value AttributeSource::Get(const char* name, const Value& like) {
  if (!file_.ok()) return like;
  if (H5Aexists(object_, name) <= 0) {
    file_.Note("attribute {} of {} is missing", name, path_);
    return like;
  }
  const hdf5::Handle attribute(H5Aopen(object_, name, H5P_DEFAULT), H5Aclose);
  const hdf5::Handle stored(H5Aget_type(attribute.get()), H5Tclose);
  const hdf5::Handle space(H5Aget_space(attribute.get()), H5Sclose);
  Value value = like;
  if (H5Sget_simple_extent_npoints(space.get()) == 1 && Fits(stored.get(), like) &&
      Read(attribute.get(), stored.get(), value)) {
    return value;
  }
  file_.Note("attribute {} of {} has another type or shape", name, path_);
  return like;
}

bool AttributeSource::Has(const char* name) { return file_.ok() && H5Aexists(object_, name) > 0; }

void AttributeSource::Refuse(const char* name, const Value& value) {
  file_.Note("attribute {} of {} has the unknown value '{}'", name, path_,
              std::get<std::string>(value));
}

}  // namespace lockstep::results::store
