"""Run files with one thing changed behind the writer's back, and sealed again, so that they are
read."""
import random
import shutil
import struct

import h5py
import numpy

_SEAL_BYTES = 512
_WORD = (1 << 64) - 1
_NUMBERS = [0, 1, -1, 2, 7, 255, 65535, 2**31 - 1, -2**31, 2**32 - 1, 2**63 - 1, -2**63, 2**64 - 1]
_FLOATS = [0.0, -1.0, 1e300, -1e300, 5e-324, float("nan"), float("inf"), float("-inf")]
_TEXTS = ["", "x", "-1", "0,1,0", "nan", "hung", "\n\t\"\\", "%s{}", "9" * 40, "ü" * 50]


def _mix(word):
    word = (word + 0x9e3779b97f4a7c15) & _WORD
    word = ((word ^ (word >> 30)) * 0xbf58476d1ce4e5b9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94d049bb133111eb) & _WORD
    return word ^ (word >> 31)


def seal(path):
    """The first line of the file, as results/store/seal.cc writes it."""
    with open(path, "rb") as file:
        head = file.read(_SEAL_BYTES)
        body = file.read()
    lanes = [1, 2, 3, 4]
    padded = body + bytes(-len(body) % 32)
    words = struct.unpack(f"<{len(padded) // 8}Q", padded)
    for number, lane in enumerate(lanes):
        for word in words[number::4]:
            lane = (lane ^ word) * 0x9e3779b97f4a7c15 & _WORD
            lane ^= lane >> 29
        lanes[number] = lane
    value = len(body)
    for lane in lanes:
        value = _mix(value ^ lane)
    schema = head.split(b"schema=")[1].split()[0].decode()
    line = (f"Lockstep run file: HDF5 from byte 512 on. schema={schema} "
            f"bytes={_SEAL_BYTES + len(body)} checksum={value:016x}\n").encode()
    with open(path, "r+b") as file:
        file.write(line.ljust(_SEAL_BYTES, b"\0"))


def _other(dice, value, dtype):
    """Another value for a cell or an attribute of that type."""
    if h5py.check_string_dtype(dtype) is not None or dtype.kind in "SUO":
        return dice.choice(_TEXTS)
    if dtype.kind == "f":
        return dice.choice(_FLOATS)
    number = dice.choice(_NUMBERS + [dice.getrandbits(64)])
    bits = 8 * dtype.itemsize
    number &= (1 << bits) - 1
    return number - (1 << bits) if dtype.kind == "i" and number >> (bits - 1) else number


def _set_cell(dice, data):
    if data.shape is None or data.size == 0:
        return None
    rows = data[()]
    names = data.dtype.names
    if not names:
        if data.shape == ():
            data[()] = _other(dice, rows, data.dtype)
            return data.name
        place = tuple(dice.randrange(n) for n in data.shape)
        data[place] = _other(dice, rows[place], data.dtype)
        return f"{data.name}{place}"
    row, name = dice.randrange(len(rows)), dice.choice(names)
    base = rows.dtype.fields[name][0]
    value = _other(dice, rows[row][name], base)
    rows[name][row] = value.encode()[:base.itemsize] if isinstance(value, str) else value
    data[...] = rows
    return f"{data.name}[{row}].{name} = {value!r}"


def _set_attribute(dice, item):
    names = [n for n in item.attrs if not n.isupper()]
    if not names:
        return None
    name = dice.choice(names)
    dtype = item.attrs.get_id(name).dtype
    value = _other(dice, item.attrs[name], dtype)
    if isinstance(value, str):
        item.attrs[name] = value
    else:
        item.attrs.modify(name, numpy.array(value).astype(dtype))
    return f"{item.name}@{name} = {value!r}"


def _replace(dice, file, item):
    name = item.name
    if name == "/":
        return None
    what = dice.choice(("gone", "group", "numbers", "text"))
    del file[name]
    if what == "group":
        file.create_group(name)
    elif what == "numbers":
        file[name] = numpy.zeros(dice.choice(((), (0,), (3,), (2, 5))), dice.choice("iqdB"))
    elif what == "text":
        file[name] = dice.choice(_TEXTS)
    return f"{name} is {what}"


def mutate(source, target, seed):
    """Copies a run file and changes one value, attribute or object of it; says which."""
    dice = random.Random(seed)
    while True:
        shutil.copyfile(source, target)
        with h5py.File(target, "r+") as file:
            items = [file]
            file.visititems(lambda _, item: items.append(item))
            data = [item for item in items if isinstance(item, h5py.Dataset)]
            kind = dice.randrange(10)
            if kind < 6:
                changed = _set_cell(dice, dice.choice(data))
            elif kind < 9:
                changed = _set_attribute(dice, dice.choice(items))
            else:
                changed = _replace(dice, file, dice.choice(items))
        if changed:
            seal(target)
            return changed


def flip_bytes(source, target, seed):
    """Copies a run file and changes a few bytes of it, without a new seal."""
    dice = random.Random(seed)
    with open(source, "rb") as file:
        whole = bytearray(file.read())
    for _ in range(dice.randrange(1, 9)):
        whole[dice.randrange(len(whole))] = dice.randrange(256)
    with open(target, "wb") as file:
        file.write(whole)
    return f"bytes, seed {seed}"
