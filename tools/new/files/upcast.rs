/// Makes a payload of version __to__ from one of version __from__.
fn __upcast__(data: ringfence::Fields) -> Result<ringfence::Fields, ringfence::FieldError> {
    Ok(data)
}

/// Makes a payload of version __from__, which is still written, from one of version __to__.
fn __downcast__(data: ringfence::Fields) -> Result<ringfence::Fields, ringfence::FieldError> {
    Ok(data)
}
