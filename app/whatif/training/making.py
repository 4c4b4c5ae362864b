def made_real(x):
    return {}
