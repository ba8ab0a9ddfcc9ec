// Attributes of one object: named scalars, texts of variable length in UTF-8.
#pragma once

#include <hdf5.h>

#include <string>

#include "core/hdf5/handle.h"
#include "results/store/fields.h"

namespace lockstep::results::store {

// The types of a value in a file (little endian) and in memory. `text_bytes` is the fixed length
// of a text, or H5T_VARIABLE. Booleans are h5py's: an enumeration FALSE, TRUE of 8 bits.
hdf5::Handle FileType(const Value& like, std::size_t text_bytes);
hdf5::Handle MemoryType(const Value& like, std::size_t text_bytes);

// `path` names the object in messages.
class AttributeSink : public ValueSink {
 public:
  AttributeSink(hid_t object, std::string path, hdf5::File& file)
      : object_(object), path_(std::move(path)), file_(file) {}
  // Units become the text attribute "<name>.units". A name that exists already is replaced.
  void Put(const char* name, const Value& value, const char* units) override;

 private:
  void PutOne(const std::string& name, const Value& value);
  hid_t object_;
  std::string path_;
  hdf5::File& file_;
};

class AttributeSource : public ValueSource {
 public:
  AttributeSource(hid_t object, std::string path, hdf5::File& file)
      : object_(object), path_(std::move(path)), file_(file) {}
  Value Get(const char* name, const Value& like) override;
  void Refuse(const char* name, const Value& value) override;
  bool Has(const char* name) override;

 private:
  hid_t object_;
  std::string path_;
  hdf5::File& file_;
};

}  // namespace lockstep::results::store
