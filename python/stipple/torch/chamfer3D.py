"""The names of the published ChamferDistancePytorch, for code that uses it:

    from stipple.torch import chamfer3D, fscore      # instead of: import chamfer3D.dist_chamfer_3D, fscore

    chamLoss = chamfer3D.dist_chamfer_3D.chamfer_3DDist()
    dist1, dist2, idx1, idx2 = chamLoss(points1, points2)
    f_score, precision, recall = fscore.fscore(dist1, dist2)
"""
import types

from .distances import chamfer_3DDist

dist_chamfer_3D = types.SimpleNamespace(chamfer_3DDist=chamfer_3DDist)
