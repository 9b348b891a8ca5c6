import pytest

import jaxloop
from jaxloop._errors import SpecError
from jaxloop.designs import files, shipped


def test_all_shipped_designs_load():
    assert shipped()
    for design in shipped():
        assert design.name.endswith(f":{design.workload}")
        assert design.description and design.source
        assert jaxloop.loads(files(design.name)).nest is not None


def test_files_carry_their_folder():
    contents = files("eyeriss:alexnet_conv2")
    assert "eyeriss/arch.yaml" in contents
    assert all(name.startswith("eyeriss/") and text for name, text in contents.items())


@pytest.mark.parametrize(
    ("name", "proposal"),
    [("eyeris:alexnet_conv2", 'did you mean "eyeriss:alexnet_conv2"'), ("eyeriss", "eyeriss:alexnet_conv1")],
)
def test_unknown_names_get_proposals(name, proposal):
    with pytest.raises(SpecError, match="no design of this name") as caught:
        files(name)
    assert proposal in str(caught.value)
